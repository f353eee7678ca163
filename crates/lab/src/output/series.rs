//! `series.parquet`: the time series in long form, for data frames and SQL.

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
    results.series.rows(|Reading { at, source, metric, value }| {
        columns.push(at, kind(source), names.of(source), ByteArray::from(Metric::name(metric)), value);
        if columns.at.len() == GROUP && outcome.is_ok() {
            outcome = columns.flush(&mut file);
        }
    });
    let mut word = |metric: String, at: Instant, flow: u32, value: i64| {
        let metric = ByteArray::from(metric.into_bytes());
        columns.push(at, "flow", names.of(Source::Flow(flow)), metric, drawn(value));
        if columns.at.len() == GROUP && outcome.is_ok() {
            outcome = columns.flush(&mut file);
        }
    };
    results.series.words(|at, flow, name, value| word(format!("context.{name}"), at, flow, value));
    results.series.receiver_words(|at, flow, name, value| {
        word(format!("receiver.context.{name}"), at, flow, value);
    });
    outcome.and_then(|()| columns.flush(&mut file)).map_err(io::Error::other)?;
    file.close().map_err(io::Error::other)?;
    Ok(())
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
