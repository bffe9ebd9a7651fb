//! Time the boundary machine needs to read frames: `cargo bench --bench boundary`.

#[path = "common/frames.rs"]
#[allow(dead_code, reason = "the other bench of the byte rooms uses the rest")]
mod frames;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use frames::{anthropic_token, chat_token, responses_token};
use heartline::__private::Reader;
use std::hint::black_box;

fn read_frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("boundary");
    let large = chat_token().repeat(328); // 64 KiB: what a proxy reads at once when it lags behind
    let frames: [(&str, &[u8]); 5] = [
        ("chat_200_bytes", &chat_token()),
        ("anthropic", &anthropic_token()),
        ("responses", &responses_token()),
        ("comment", b": keep-alive\n\n"),
        ("chat_64_kib", &large),
    ];
    for (name, frame) in frames {
        group.throughput(Throughput::Bytes(frame.len() as u64));
        let mut reader = Reader::new();
        group.bench_function(name, |bencher| bencher.iter(|| reader.advance(black_box(frame))));
    }
    group.finish();
}

fn read_torn_frames(criterion: &mut Criterion) {
    let frame = anthropic_token();
    let mut group = criterion.benchmark_group("boundary_torn");
    group.throughput(Throughput::Bytes(frame.len() as u64));
    group.bench_function("byte_by_byte", |bencher| {
        bencher.iter_batched_ref(
            Reader::new,
            |reader| frame.chunks(1).filter(|byte| reader.advance(black_box(byte))).count(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, read_frames, read_torn_frames);
criterion_main!(benches);
