use super::*;
use crate::device::{Backend, Device, DeviceConfig};
use crate::io::MemoryWire;

fn region(access: Access, length: usize) -> MemoryRegion {
    let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
    let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
    device.alloc_pd().reg_mr(vec![0; length], access).unwrap()
}

#[test]
fn threads_read_and_write_the_same_octets_at_once_and_none_is_refused() {
    const TURNS: u8 = 200;
    for access in [Access::LOCAL_WRITE, Access::ALL] {
        let region = region(access, 4096);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (1..TURNS).for_each(|turn| region.write(0, &[turn; 4096]).unwrap()));
                scope.spawn(|| {
                    let mut octets = [0; 4096];
                    for _ in 1..TURNS {
                        region.read(0, &mut octets).unwrap();
                        assert!(octets.iter().all(|octet| *octet == octets[0]), "it is written at once");
                        region.load(8).unwrap();
                    }
                });
            }
        });
    }
}

#[test]
fn a_part_is_named_by_any_range() {
    let region = region(Access::LOCAL_WRITE, 64);
    let octets: Vec<u8> = (0..64).collect();
    region.write(0, &octets).unwrap();
    assert_eq!(region.buffer(..).unwrap().len(), 64);
    assert_eq!(region.slice(60..).unwrap().to_vec(), [60, 61, 62, 63]);
    assert_eq!(region.slice(..=1).unwrap().to_vec(), [0, 1]);
    let all = region.slice(..).unwrap();
    assert_eq!(all.slice(..2).unwrap().to_vec(), [0, 1]);
    assert_eq!(all.slice(2..).unwrap().slice(60..).unwrap().to_vec(), [62, 63]);
    assert_eq!(all.slice(64..).unwrap().len(), 0);
    assert_eq!(all.slice(..=64).unwrap_err(), LentError::Bounds(0, 65));
    assert_eq!(all.slice(65..).unwrap_err(), LentError::Bounds(65, 64));
    drop(all);
    assert_eq!(region.slice(..=usize::MAX).unwrap_err(), LentError::Bounds(0, usize::MAX));
    assert_eq!(region.buffer(65..).unwrap_err(), LentError::Bounds(65, 64));
    assert_eq!(region.buffer(64..).unwrap_err(), LentError::Empty(64));
}

#[test]
fn what_is_lent_is_neither_read_nor_written_and_it_is_said_why() {
    for access in [Access::LOCAL_WRITE, Access::ALL] {
        let region = region(access, 64);
        let buffer = region.buffer(8..16).unwrap();
        assert_eq!(region.load(8), Err(LentError::Lent(8, 16)));
        assert_eq!(region.read(15, &mut [0; 2]), Err(LentError::Lent(15, 17)));
        assert_eq!(region.write(0, &[0; 9]), Err(LentError::Lent(0, 9)));
        assert_eq!((region.write(0, &[1; 8]), region.write(16, &[1; 48])), (Ok(()), Ok(())));
        assert_eq!(region.write(57, &[0; 8]), Err(LentError::Bounds(57, 65)));
        assert_eq!((region.read(99, &mut []), region.write(99, &[])), (Ok(()), Ok(())));
        drop(buffer);
        assert_eq!((region.load(8), region.load(16)), (Ok(0), Ok(0x0101_0101_0101_0101)));
    }
}

#[test]
fn threads_that_change_one_number_at_once_lose_no_change() {
    const TURNS: u64 = 2000;
    for access in [Access::LOCAL_WRITE, Access::ALL] {
        let region = region(access, 64);
        let at = region.handle.memory().start.align_offset(8) + 8;
        region.store(at, 5).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..TURNS).for_each(|_| _ = region.fetch_add(at, 3).unwrap()));
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        let mut seen = region.load(at).unwrap();
                        loop {
                            match region.compare_swap(at, seen, seen + 1).unwrap() {
                                original if original == seen => break,
                                other => seen = other,
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(region.load(at), Ok(5 + 2 * TURNS * 4));
        assert_eq!(region.compare_swap(at, 0, 1), Ok(5 + 2 * TURNS * 4), "it is another number");
        assert_eq!(region.fetch_add(at + 4, 1), Err(LentError::Misaligned(at + 4)));
        assert_eq!(region.store(60, 1), Err(LentError::Bounds(60, 68)));
        let lent = region.buffer(at + 7..at + 8).unwrap();
        assert_eq!(region.store(at, 1), Err(LentError::Lent(at, at + 8)));
        drop(lent);
        assert_eq!([region.load(at - 8), region.load(at + 8)], [Ok(0), Ok(0)]);
    }
}

#[test]
fn a_long_copy_lets_others_go_between_its_pieces_and_tears_no_eight_octets() {
    let region = region(Access::ALL, 64 * PIECE);
    let memory = region.handle.memory().clone();
    for offset in 0..9 {
        let (mut pieces, length) = (Vec::new(), 3 * PIECE);
        memory.in_pieces(offset, length, |piece| {
            assert!(memory.busy.load(Ordering::Relaxed), "it is held");
            pieces.push(piece);
        });
        assert!(!memory.busy.load(Ordering::Relaxed));
        assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE), "{pieces:?}");
        assert!(
            pieces.windows(2).all(|two| two[0].end == two[1].start
                && (memory.start.addr() + offset + two[0].end).is_multiple_of(8))
        );
        assert_eq!((pieces[0].start, pieces[pieces.len() - 1].end), (0, length));
    }
    let octets: Vec<u8> = (0..64 * PIECE - 3).map(|at| (at / 7).to_le_bytes()[0]).collect();
    region.write(3, &octets).unwrap();
    let mut back = vec![0; octets.len()];
    region.read(3, &mut back).unwrap();
    assert!(back == octets && region.slice(3..64 * PIECE).unwrap().to_vec() == octets);
}

#[test]
fn who_waits_for_a_region_gets_it_before_a_long_copy_is_done() {
    let region = region(Access::ALL, 64);
    let memory = region.handle.memory();
    let (begun, served) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut pieces = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            memory.hold();
            served.store(true, Ordering::SeqCst);
            memory.let_go();
        });
        memory.in_pieces(0, 10_000 * PIECE, |_| {
            begun.store(true, Ordering::SeqCst);
            while memory.waiting.load(Ordering::SeqCst) == 0 && !served.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            pieces += u32::from(!served.load(Ordering::SeqCst));
        });
    });
    assert!(pieces < 1000, "it waited for {pieces} pieces");
}
