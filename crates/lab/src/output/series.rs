//! `series.parquet`: the time series in long form, for data frames and SQL; and `series.csv`, the same as text.

use super::flows::quoted;
use crate::results::Results;
use crate::results::series::{Metric, Reading, Source, drawn};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use roci_units::Instant;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

const SCHEMA: &str = "message series {
    required int64 t_ps;
    required binary kind (string);
    required binary name (string);
    required binary metric (string);
    required double value;
}";

/// Rows per row group: what is held in memory at a time.
const GROUP: usize = 1 << 17;

/// Writes the time series of `results`; a run without samples gives a table without rows.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut (impl Write + Send), results: &Results) -> io::Result<()> {
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(io::Error::other)?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut file = SerializedFileWriter::new(out, schema, properties).map_err(io::Error::other)?;
    let mut columns = Columns::default();
    let mut names = Names { results, known: BTreeMap::new() };
    let mut outcome = Ok(());
    each_row(results, |at, source, metric, value| {
        columns.push(at, kind(source), names.of(source), ByteArray::from(metric), value);
        if columns.at.len() == GROUP && outcome.is_ok() {
            outcome = columns.flush(&mut file);
        }
    });
    outcome.and_then(|()| columns.flush(&mut file)).map_err(io::Error::other)?;
    file.close().map_err(io::Error::other)?;
    Ok(())
}

/// Writes the same rows as text, with a heading (RFC 4180).
///
/// # Errors
/// What `out` answers.
pub fn write_csv(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "t_ps,kind,name,metric,value")?;
    let mut names = Names { results, known: BTreeMap::new() };
    let mut outcome = Ok(());
    each_row(results, |at, source, metric, value| {
        if outcome.is_ok() {
            let name = names.of(source);
            let name = quoted(name.as_utf8().unwrap_or_default());
            outcome = writeln!(out, "{},{},{name},{},{value}", at.as_ps(), kind(source), quoted(metric));
        }
    });
    outcome
}

/// Gives `each` every row: when, of what, which metric, and its value.
fn each_row(results: &Results, mut each: impl FnMut(Instant, Source, &str, f64)) {
    results
        .series
        .rows(|Reading { at, source, metric, value }| each(at, source, Metric::name(metric), value));
    let mut word = |prefix: &str, at: Instant, flow: u32, name: &str, value: i64| {
        each(at, Source::Flow(flow), &format!("{prefix}context.{name}"), drawn(value));
    };
    results.series.words(|at, flow, name, value| word("", at, flow, name, value));
    results.series.receiver_words(|at, flow, name, value| word("receiver.", at, flow, name, value));
}

/// Names by source, each made once.
struct Names<'a> {
    results: &'a Results,
    known: BTreeMap<Source, ByteArray>,
}

impl Names<'_> {
    fn of(&mut self, source: Source) -> ByteArray {
        let results = self.results;
        let make = || match source {
            Source::Flow(flow) => results.flows[flow as usize].name.to_string(),
            Source::Queue(queue) => results.series.queue_names()[queue as usize].clone(),
            Source::Machine(host) => results.hosts[host as usize].name.clone(),
            Source::Requests(table) => results.traffic[table as usize].name.clone(),
        };
        self.known.entry(source).or_insert_with(|| ByteArray::from(make().into_bytes())).clone()
    }
}

/// One row group in the making.
#[derive(Default)]
struct Columns {
    at: Vec<i64>,
    kind: Vec<ByteArray>,
    name: Vec<ByteArray>,
    metric: Vec<ByteArray>,
    value: Vec<f64>,
}

impl Columns {
    fn push(&mut self, at: Instant, kind: &str, name: ByteArray, metric: ByteArray, value: f64) {
        self.at.push(i64::try_from(at.as_ps()).unwrap_or(i64::MAX));
        self.kind.push(ByteArray::from(kind));
        self.name.push(name);
        self.metric.push(metric);
        self.value.push(value);
    }

    fn flush<W: Write + Send>(&mut self, file: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        if self.at.is_empty() {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        column::<Int64Type, _>(&mut group, &self.at)?;
        column::<ByteArrayType, _>(&mut group, &self.kind)?;
        column::<ByteArrayType, _>(&mut group, &self.name)?;
        column::<ByteArrayType, _>(&mut group, &self.metric)?;
        column::<DoubleType, _>(&mut group, &self.value)?;
        group.close()?;
        *self = Self::default();
        Ok(())
    }
}

const fn kind(source: Source) -> &'static str {
    match source {
        Source::Flow(_) => "flow",
        Source::Queue(_) => "queue",
        Source::Machine(_) => "machine",
        Source::Requests(_) => "requests",
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has too few columns".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, with_rpc};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn bytes(results: &Results) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, results).unwrap();
        out
    }

    #[test]
    fn every_reading_is_a_row_and_is_read_back() {
        let results = with_rpc();
        let mut expected = Vec::new();
        results.series.rows(|reading| expected.push(reading));
        assert!(expected.len() > 100);
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes(&results))).unwrap();
        let mut rows = reader.get_row_iter(None).unwrap();
        for reading in &expected {
            let row = rows.next().unwrap().unwrap();
            assert_eq!(row.get_long(0).unwrap().cast_unsigned(), reading.at.as_ps());
            assert_eq!(row.get_string(1).unwrap(), kind(reading.source));
            let name = match reading.source {
                Source::Flow(flow) => results.flows[flow as usize].name.to_string(),
                Source::Queue(queue) => results.series.queue_names()[queue as usize].clone(),
                Source::Machine(_) => "rx".to_owned(),
                Source::Requests(_) => "0".to_owned(),
            };
            assert_eq!(*row.get_string(2).unwrap(), name);
            assert_eq!(row.get_string(3).unwrap(), reading.metric.name());
            assert_eq!(row.get_double(4).unwrap(), reading.value);
        }
        assert!(rows.next().is_none());
        let of = |wanted| move |reading: &&Reading| kind(reading.source) == wanted;
        let counts = ["machine", "requests"].map(|kind| expected.iter().filter(of(kind)).count());
        assert_eq!(counts, [3 * 300, 300], "of each sample");
    }

    #[test]
    fn the_text_has_the_same_rows_with_their_full_precision() {
        let mut results = with_rpc();
        results.flows[0].name = crate::results::FlowName::Given("disk, rack 2".into());
        let mut csv = Vec::new();
        write_csv(&mut csv, &results).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let mut lines = csv.lines();
        assert_eq!(lines.next(), Some("t_ps,kind,name,metric,value"));
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes(&results))).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let line = lines.next().unwrap();
            let cell = |place| row.get_string(place).unwrap();
            let first = format!("{},{},{},{},", row.get_long(0).unwrap(), cell(1), quoted(cell(2)), cell(3));
            let value: f64 = line.strip_prefix(&first).unwrap_or_else(|| panic!("{line}")).parse().unwrap();
            assert_eq!(value, row.get_double(4).unwrap(), "{line}");
        }
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn text_is_written_where_it_was_asked_for() {
        let folder = std::env::temp_dir().join(format!("roci-series-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut results = sample();
        let written = [false, true].map(|text| {
            results.series.set_text(text);
            crate::output::write_all(&folder, &mut results, &|| 0.0).unwrap();
            folder.join("series.csv").exists()
        });
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(written, [false, true]);
    }

    #[test]
    fn the_same_results_give_the_same_octets() {
        assert_eq!(bytes(&sample()), bytes(&sample()));
    }

    #[test]
    fn no_samples_give_a_table_without_rows() {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes(&Results::default()))).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert_eq!(reader.metadata().file_metadata().schema().get_fields().len(), 5);
    }
}
