package dev.nereid.benchmarks.micro;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Reads and writes a tensor of 1,000,000 FP32 values as JSON, on one thread. Run by {@code CodecSection}. */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@State(Scope.Thread)
public class CodecBenchmark {
    private static final int VALUES = 1_000_000;

    @Param
    public JsonCodec.Values values = JsonCodec.Values.UNIFORM;

    @SuppressWarnings("NullAway.Init") // By open().
    private JsonCodec codec;

    /** Counts bytes in addition to runs. */
    @AuxCounters
    @State(Scope.Thread)
    public static class Counters {
        /** How many bytes of JSON were read or written. */
        public long bytes;
    }

    @Setup
    public void open() {
        codec = new JsonCodec(values, VALUES);
    }

    @TearDown
    public void close() {
        codec.close();
    }

    @Benchmark
    public void read(Counters counters) {
        counters.bytes += codec.read();
    }

    @Benchmark
    public void write(Counters counters) {
        counters.bytes += codec.write();
    }
}
