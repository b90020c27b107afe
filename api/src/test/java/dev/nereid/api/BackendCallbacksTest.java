package dev.nereid.api;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ModelSettings;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Tests which stacks a report on a model has. */
final class BackendCallbacksTest {
    private static final ModelSettings MODEL = ModelSettings.builder("m", 1).build();

    private static BackendCallbacks threads(String... names) {
        Map<Thread, StackTraceElement[]> threads = new LinkedHashMap<>();
        for (String name : names) {
            threads.put(new Thread(name), new StackTraceElement[] {new StackTraceElement("a.B", name, "B.java", 1)});
        }
        return new BackendCallbacks() {
            @Override
            public void execute(Runnable action) {
                throw new UnsupportedOperationException("nothing is executed");
            }

            @Override
            public Map<Thread, StackTraceElement[]> threads() {
                return threads;
            }
        };
    }

    /** Several models of one plugin may have threads in its code. */
    @Test
    void haveNoStackOfAnotherModel() {
        Throwable first = requireNonNull(
                threads("instance/m/2/m_0", "executor/m/1/3", "instance/mm/1/mm_0", "own", "executor/o/1/3")
                        .stacks(MODEL));

        assertThat(Stream.concat(Stream.of(first), Stream.of(first.getSuppressed())))
                .extracting(stack -> stack.getStackTrace()[0].getMethodName())
                .containsExactly("executor/m/1/3", "own");
        assertThat(threads("instance/other/1/other_0").stacks(MODEL)).isNull();
    }
}
