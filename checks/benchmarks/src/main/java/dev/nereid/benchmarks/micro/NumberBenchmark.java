package dev.nereid.benchmarks.micro;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Compares parsers and writers of JSON numbers: this project's, the JDK's and FastDoubleParser. Run by JMH itself:
 * {@code java -cp 'checks/benchmarks/target/classes:checks/benchmarks/target/lib/*' org.openjdk.jmh.Main NumberBenchmark}.
 */
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@State(Scope.Thread)
@Fork(2)
@Warmup(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class NumberBenchmark {
    private static final int COUNT = 100_000;

    @Param
    public NumberCodec.Kind kind = NumberCodec.Kind.FP32;

    @SuppressWarnings("NullAway.Init") // By open().
    private NumberCodec codec;

    @Setup
    public void open() {
        codec = new NumberCodec(kind, COUNT);
    }

    @TearDown
    public void close() {
        codec.close();
    }

    /** Reads with this project's parser. */
    @Benchmark
    @OperationsPerInvocation(COUNT)
    public MemorySegment read() {
        return codec.read();
    }

    /** Reads with FastDoubleParser. */
    @Benchmark
    @OperationsPerInvocation(COUNT)
    public MemorySegment readByLibrary() {
        return codec.readByLibrary();
    }

    /** Reads with FastDoubleParser after a check of the syntax. */
    @Benchmark
    @OperationsPerInvocation(COUNT)
    public MemorySegment readByCheckedLibrary() {
        return codec.readByCheckedLibrary();
    }

    @Benchmark
    @OperationsPerInvocation(COUNT)
    public MemorySegment readByJdk() {
        return codec.readByJdk();
    }

    @Benchmark
    @OperationsPerInvocation(COUNT)
    public int write() {
        return codec.write();
    }

    /** Writes with the JDK's digits, a string for each number. */
    @Benchmark
    @OperationsPerInvocation(COUNT)
    public int writeByJdk() {
        return codec.writeByJdk();
    }

    /** Writes with the JDK's digits and a reused builder. */
    @Benchmark
    @OperationsPerInvocation(COUNT)
    public int writeByBuilder() {
        return codec.writeByBuilder();
    }
}
