package dev.nereid.examples.repeat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.FakeSender;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class RepeatInstanceTest {
    private static final ModelSettings MODEL = ModelSettings.builder("repeat", 1)
            .decoupled(true)
            .input(TensorSpec.of("IN", DataType.INT32, Shape.of(Shape.VARIABLE)))
            .input(TensorSpec.of("DELAY", DataType.UINT32, Shape.of(Shape.VARIABLE)))
            .input(TensorSpec.of("WAIT", DataType.UINT32, Shape.of(1)))
            .output(TensorSpec.of("OUT", DataType.INT32, Shape.of(1)))
            .output(TensorSpec.of("IDX", DataType.UINT32, Shape.of(1)))
            .build();

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final FakeSender sender = new FakeSender(memory);

    private final ManualTimer timer = new ManualTimer();
    private long now;

    @AfterEach
    void checkMemory() {
        sender.close();
        memory.close();
    }

    @Test
    void sendsEachElementAfterItsDelay() {
        execute(request(new int[] {5, 6}, new int[] {10, 20}, 0));

        assertThat(sender.responses()).isEmpty();
        assertThat(timer.next()).isEqualTo(10);
        timer.fire();
        assertThat(sender.responses()).hasSize(1);
        assertThat(timer.next()).isEqualTo(20);
        timer.fire();
        assertThat(sender.responses())
                .extracting(response -> number(response, "OUT"))
                .containsExactly(5, 6);
        assertThat(sender.responses())
                .extracting(response -> number(response, "IDX"))
                .containsExactly(0, 1);
        assertThat(sender.hasEnded()).isTrue();
        assertThat(timer.isEmpty()).isTrue();
    }

    @Test
    void takesDelaysAsUnsigned() {
        execute(request(new int[] {1}, new int[] {-1}, 0));

        assertThat(timer.next()).isEqualTo(0xFFFF_FFFFL);
        timer.fire();
        assertThat(sender.hasEnded()).isTrue();
    }

    @Test
    void endsAtOnceWithoutElements() {
        execute(request(new int[0], new int[0], 0));

        assertThat(sender.responses()).isEmpty();
        assertThat(sender.hasEnded()).isTrue();
    }

    @Test
    void endsAsSoonAsTheClientIsGone() {
        FakeRequest request = request(new int[] {5, 6, 7}, new int[] {10, 1_000_000, 1}, 0);
        execute(request);
        timer.fire();

        request.cancel();

        assertThat(sender.hasEnded()).isTrue();
        assertThat(sender.responses()).hasSize(1);
        timer.fire();
        assertThat(sender.responses()).hasSize(1);
        assertThat(timer.isEmpty()).isTrue();
    }

    @Test
    void waitsForAClientThatReadsSlowly() {
        execute(request(new int[] {5, 6}, new int[] {10, 20}, 0));
        sender.setReady(false);
        timer.fire();
        assertThat(sender.responses()).isEmpty();
        assertThat(timer.isEmpty()).isTrue();

        sender.setReady(true);
        timer.fire();

        assertThat(sender.responses())
                .extracting(response -> number(response, "OUT"))
                .containsExactly(5, 6);
        assertThat(sender.hasEnded()).isTrue();
        assertThat(sender.isAwaited()).isFalse();
    }

    @Test
    void endsAsSoonAsASlowClientIsGone() {
        FakeRequest request = request(new int[] {5, 6}, new int[] {10, 20}, 0);
        execute(request);
        sender.setReady(false);
        timer.fire();

        request.cancel();

        assertThat(sender.hasEnded()).isTrue();
        assertThat(sender.responses()).isEmpty();
        assertThat(sender.isAwaited()).isFalse();
        assertThat(timer.isEmpty()).isTrue();
    }

    @Test
    void waitsBeforeTheExecutionReturns() {
        execute(request(new int[0], new int[0], 50));

        assertThat(now).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(50));
    }

    @Test
    void stopsWaitingOnceTheRequestIsCancelled() {
        FakeRequest request = request(new int[] {1}, new int[] {1}, -1);
        request.cancel();

        execute(request);

        assertThat(now).isLessThan(TimeUnit.MILLISECONDS.toNanos(1_000));
        assertThat(sender.hasEnded()).isTrue();
    }

    @Test
    void refusesAnotherNumberOfDelays() {
        execute(request(new int[] {1, 2, 3}, new int[] {1, 2}, 0));

        assertThat(sender.failure()).hasValueSatisfying(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error).hasMessage("expected IN and DELAY shape to match, got [3] and [2]");
        });
    }

    @Test
    void endsTheRequestWhenThereIsNoMemory() {
        LeakCheckingMemory little = new LeakCheckingMemory(4);
        try (little;
                FakeSender failing = new FakeSender(little)) {
            execute(request(new int[] {1}, new int[] {1}, 0).with(failing));
            timer.fire();

            assertThat(failing.failure()).isPresent();
        }
    }

    @Test
    void refusesModelsWithOtherTensors() {
        assertRefused(
                ModelSettings.builder("m", 1).maxBatchSize(2),
                "repeat backend only supports models with max_batch_size == 0 (model 'm' has: 2)");
        assertRefused(
                ModelSettings.builder("m", 1).decoupled(true).input(TensorSpec.of("IN", DataType.INT32, Shape.of(1))),
                "input 'DELAY': missing (expected: UINT32)");
    }

    private static void assertRefused(ModelSettingsBuilder settings, String message) {
        assertThatThrownBy(() -> RepeatBackend.check(settings.build()))
                .isInstanceOf(BackendException.class)
                .hasMessage(message);
    }

    private static int number(Map<String, Tensor> response, String output) {
        Tensor tensor = response.get(output);
        assertThat(tensor).isNotNull();
        return tensor.data().get(ValueLayout.JAVA_INT, 0);
    }

    private FakeRequest request(int[] in, int[] delays, int wait) {
        return new FakeRequest(1, List.of("OUT", "IDX"))
                .with("IN", tensor(DataType.INT32, in))
                .with("DELAY", tensor(DataType.UINT32, delays))
                .with("WAIT", tensor(DataType.UINT32, wait))
                .with(sender);
    }

    private static Tensor tensor(DataType type, int... values) {
        return Tensor.of(type, Shape.of(values.length), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, values));
    }

    private void execute(FakeRequest request) {
        try (FakeBatch batch = new FakeBatch(MODEL, memory, request)) {
            new RepeatInstance(true, timer, () -> now += 1_000_000).execute(batch);
        }
    }

    /** A timer that the test runs. Confined to its thread. */
    private static final class ManualTimer implements Timer {
        private record ScheduledAction(Runnable action, long delayMillis) {}

        private final ArrayDeque<ScheduledAction> actions = new ArrayDeque<>();

        @Override
        public void run(Runnable action, long delayMillis) {
            actions.add(new ScheduledAction(action, delayMillis));
        }

        long next() {
            return actions.getFirst().delayMillis();
        }

        void fire() {
            actions.removeFirst().action().run();
        }

        boolean isEmpty() {
            return actions.isEmpty();
        }
    }
}
