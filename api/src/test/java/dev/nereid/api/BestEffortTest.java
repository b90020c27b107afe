package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

final class BestEffortTest {
    static List<Throwable> failures() {
        return List.of(
                new ArithmeticException("long overflow"),
                new StackOverflowError(),
                new OutOfMemoryError("Requested array size exceeds VM limit"),
                new NoClassDefFoundError("gone"),
                new UnprintableException());
    }

    @ParameterizedTest
    @MethodSource("failures")
    void noFailureReachesTheCaller(Throwable failure) {
        assertThatCode(() -> BestEffort.run("table", () -> sneak(failure))).doesNotThrowAnyException();
        String value = BestEffort.get("table", "otherwise", () -> {
            sneak(failure);
            return "value";
        });
        assertThat(value).isEqualTo("otherwise");
    }

    /** Whoever handles fatal errors has to see it. */
    @Test
    void aFullHeapIsThrown() {
        OutOfMemoryError full = new OutOfMemoryError("Java heap space");

        assertThatThrownBy(() -> BestEffort.run("table", () -> sneak(full))).isSameAs(full);
        assertThatThrownBy(() -> BestEffort.get("table", "otherwise", () -> {
                    throw new IllegalStateException(full);
                }))
                .isSameAs(full);
    }

    @Test
    void runsTheTaskAndReturnsTheValue() {
        List<String> ran = new ArrayList<>();
        BestEffort.run("table", () -> ran.add("task"));
        assertThat(ran).containsExactly("task");
        assertThat(BestEffort.<String>get("table", "otherwise", () -> "value")).isEqualTo("value");
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void sneak(Throwable failure) throws E {
        throw (E) failure;
    }

    /** An exception that cannot be logged. */
    private static final class UnprintableException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        @Override
        public String getMessage() {
            throw new IllegalStateException("no message");
        }

        @Override
        public StackTraceElement[] getStackTrace() {
            throw new IllegalStateException("no frames");
        }
    }
}
