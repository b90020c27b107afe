package dev.nereid.testkit.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.OptionalLong;
import java.util.Queue;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests when the growth of a resource counts as a leak, with numbers in place of those of the process. */
final class LoadCyclesTest {
    private static final long MIB = 1 << 20;
    private static final int LOADS = 2;

    @TempDir
    private Path cache;

    private final Queue<ResourceWatch> measured = new ArrayDeque<>();

    private LoadCycles cycles(LongFunction<ResourceWatch> resources, long... inUse) {
        Arrays.stream(inUse).mapToObj(resources).forEach(measured::add);
        ContractExample example =
                ContractExample.request().input("IN", Shape.of(1), 1f).output("OUT", Shape.of(1), 2f);
        ContractModel model = ContractModel.of(ModelSettings.builder("m", 1)
                        .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                        .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                        .build())
                .withCache(cache);
        return new LoadCycles(Doubling.right(), model, example, measured::remove);
    }

    private static ResourceWatch memory(long mebibytes) {
        return new ResourceWatch(1, OptionalLong.of(1), OptionalLong.of(mebibytes * MIB));
    }

    @Test
    void looksNoFurtherIfTheFirstStretchIsFarBelowTheLimit() {
        assertThat(cycles(LoadCyclesTest::memory, 100, 108).run(LOADS)).isEmpty();
        assertThat(measured).isEmpty();
    }

    @Test
    void passesIfMostStretchesAreWithinTheLimit() {
        cycles(LoadCyclesTest::memory, 100, 126, 100, 126, 126, 126).run(LOADS);
        assertThat(measured).isEmpty();
        cycles(LoadCyclesTest::memory, 100, 126, 152, 152, 153, 154).run(LOADS);
        assertThat(measured).isEmpty();
    }

    @Test
    void failsIfMostStretchesAreBeyondTheLimit() {
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(
                        () -> cycles(LoadCyclesTest::memory, 100, 117, 134, 151).run(LOADS))
                .withMessage("more bytes of native memory in each of 3 stretches of loads:"
                        + " [17825792, 17825792, 17825792] (expected: at most 16777216 in most)");
        assertThat(measured).isEmpty();
    }

    @Test
    void findsALeakThatOtherMemoryHidesInTwoStretches() {
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(() -> cycles(LoadCyclesTest::memory, 100, 109, 126, 125, 142, 159)
                        .run(LOADS))
                .withMessageContaining("more bytes of native memory");
    }

    @Test
    void checksThreadsAndFilesAlike() {
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(() -> cycles(
                                threads -> new ResourceWatch((int) threads, OptionalLong.of(1), OptionalLong.of(1)),
                                1,
                                10,
                                19,
                                28)
                        .run(LOADS))
                .withMessageContaining("more threads");
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(() -> cycles(
                                files -> new ResourceWatch(1, OptionalLong.of(files), OptionalLong.of(1)),
                                1,
                                10,
                                19,
                                28)
                        .run(LOADS))
                .withMessageContaining("more open files");
    }

    @Test
    void namesWhatTheSystemDoesNotCount() {
        assertThat(cycles(threads -> new ResourceWatch(1, OptionalLong.empty(), OptionalLong.empty()), 1, 1)
                        .run(LOADS))
                .containsExactly("open files", "bytes of native memory");
    }

    @Test
    void skipsTheRestOfTheCheckWithItsReason() {
        BackendContract unknown = new BackendContract() {
            @Override
            protected BackendProvider provider() {
                return Doubling.right();
            }

            @Override
            protected ContractModel model() {
                return ContractModel.of(ModelSettings.builder("m", 1)
                                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                                .build())
                        .withCache(cache)
                        .with(ContractExample.request()
                                .input("IN", Shape.of(1), 1f)
                                .output("OUT", Shape.of(1), 2f));
            }

            @Override
            protected int loads() {
                return LOADS;
            }

            @Override
            ResourceWatch resources() {
                return new ResourceWatch(1, OptionalLong.empty(), OptionalLong.of(1));
            }
        };
        unknown.readModel();

        assertThatThrownBy(unknown::leavesNothingBehindAfterLoads)
                .hasMessageContaining("not checked: [open files], which this system does not count")
                .satisfies(e -> assertThat(e.getClass().getSimpleName()).isEqualTo("TestAbortedException"));
    }
}
