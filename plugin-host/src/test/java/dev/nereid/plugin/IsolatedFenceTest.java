package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.plugin.IsolatedCallbacks.IsolatedFence;
import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Fence;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;

/** Events of a plugin's fence, which an action of another plugin receives. */
final class IsolatedFenceTest {
    private final PluginBoundary boundary = new PluginBoundary("first", IsolatedFenceTest.class.getClassLoader());
    private final List<Long> received = new ArrayList<>();

    /** A fence whose event does as the test says. */
    private abstract static class TestFence implements Fence {
        @Override
        public boolean isDone() {
            return false;
        }

        @Override
        public boolean await(Duration timeout) {
            return true;
        }
    }

    private static final class WithEvent extends TestFence {
        @Override
        public boolean withEvent(LongConsumer action) {
            action.accept(4097);
            return true;
        }
    }

    @Test
    void receivesTheEvent() {
        assertThat(new IsolatedFence(new WithEvent(), boundary).withEvent(received::add))
                .isTrue();
        assertThat(received).containsExactly(4097L);
    }

    @Test
    void ranNotForWorkWithoutAnEvent() {
        assertThat(new IsolatedFence(new TestFence() {}, boundary).withEvent(received::add))
                .isFalse();
        assertThat(received).isEmpty();
    }

    @Test
    void failuresOfTheActionAreThoseOfItsCaller() {
        Fence fence = new IsolatedFence(new WithEvent(), boundary);

        assertThatIllegalStateException()
                .isThrownBy(() -> fence.withEvent(event -> {
                    throw new IllegalStateException("of the action");
                }))
                .withMessage("of the action");
        assertThatExceptionOfType(OutOfMemoryError.class)
                .isThrownBy(() -> fence.withEvent(event -> {
                    throw new OutOfMemoryError("of the action");
                }))
                .withMessage("of the action");
    }

    @Test
    void failuresOfThePluginAreReportedByTheWait() {
        Fence fence = new IsolatedFence(
                new TestFence() {
                    @Override
                    public boolean withEvent(LongConsumer action) {
                        throw new IllegalStateException("of the plugin");
                    }

                    @Override
                    public boolean await(Duration timeout) {
                        throw new IllegalStateException("of the plugin");
                    }
                },
                boundary);

        assertThat(fence.withEvent(received::add)).isFalse();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> fence.await(Duration.ZERO))
                .withMessageContaining("plugin 'first': Fence.await failed");
        assertThat(received).isEmpty();
    }
}
