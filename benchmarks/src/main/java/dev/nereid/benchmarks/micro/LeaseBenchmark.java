package dev.nereid.benchmarks.micro;

import dev.nereid.server.lifecycle.LeaseLoad;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Measures the lease that each request takes on the generation of its model. Run by JMH itself: {@code java -cp
 * 'benchmarks/target/classes:benchmarks/target/lib/*' org.openjdk.jmh.Main LeaseBenchmark}.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@State(Scope.Benchmark)
@Fork(1)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class LeaseBenchmark {
    private static final int SEVERAL = 4;

    private final LeaseLoad load = new LeaseLoad();

    /** Acquires and releases, on one thread. */
    @Benchmark
    @Threads(1)
    public boolean oneThread() {
        return load.lease();
    }

    /** Acquires and releases the same counter on several threads. */
    @Benchmark
    @Threads(SEVERAL)
    public boolean severalThreads() {
        return load.lease();
    }
}
