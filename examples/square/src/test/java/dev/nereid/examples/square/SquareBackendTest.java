package dev.nereid.examples.square;

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
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class SquareBackendTest {
    private static final ModelSettings MODEL = ModelSettings.builder("square", 1)
            .decoupled(true)
            .input(TensorSpec.of("IN", DataType.INT32, Shape.of(1)))
            .output(TensorSpec.of("OUT", DataType.INT32, Shape.of(1)))
            .build();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 100})
    void sendsNResponsesForN(int number) {
        try (FakeSender sender = respond(number)) {
            assertThat(sender.responses()).hasSize(number).allSatisfy(outputs -> {
                assertThat(outputs).containsOnlyKeys("OUT");
                assertThat(outputs.get("OUT").shape()).isEqualTo(Shape.of(1));
                assertThat(outputs.get("OUT").data().get(ValueLayout.JAVA_INT, 0))
                        .isEqualTo(number);
            });
            assertThat(sender.hasEnded()).isTrue();
            assertThat(sender.failure()).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1, Integer.MIN_VALUE})
    void sendsOnlyTheFinalResponseForZeroOrLess(int number) {
        try (FakeSender sender = respond(number)) {
            assertThat(sender.responses()).isEmpty();
            assertThat(sender.hasEnded()).isTrue();
        }
    }

    @Test
    void stopsWhenTheClientIsGone() {
        FakeSender sender = new FakeSender(memory);
        FakeRequest request = request(Integer.MAX_VALUE).with(sender);
        request.cancel();

        execute(request);

        assertThat(sender.responses()).isEmpty();
        assertThat(sender.hasEnded()).isTrue();
    }

    @Test
    void refusesMoreThanOneNumber() {
        FakeSender sender = new FakeSender(memory);
        Tensor two = Tensor.of(DataType.INT32, Shape.of(2), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, 1, 2));

        execute(new FakeRequest(1, List.of("OUT")).with("IN", two).with(sender));

        assertThat(sender.failure()).hasValueSatisfying(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error).hasMessage("unexpected shape for IN input: [2] (expected: one element)");
        });
    }

    @Test
    void refusesModelsWithOtherTensors() {
        assertRefused(ModelSettings.builder("m", 1).decoupled(true), "input 'IN': missing (expected: INT32)");
        assertRefused(
                ModelSettings.builder("m", 1).decoupled(true).input(TensorSpec.of("IN", DataType.FP32, Shape.of(1))),
                "input 'IN': IN FP32 [1] (expected: INT32)");
    }

    private static void assertRefused(ModelSettingsBuilder settings, String message) {
        assertThatThrownBy(() -> SquareBackend.check(settings.build()))
                .isInstanceOf(BackendException.class)
                .hasMessage(message);
    }

    private FakeSender respond(int number) {
        FakeSender sender = new FakeSender(memory);
        execute(request(number).with(sender));
        return sender;
    }

    private static FakeRequest request(int number) {
        Tensor in = Tensor.of(DataType.INT32, Shape.of(1), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, number));
        return new FakeRequest(1, List.of("OUT")).with("IN", in);
    }

    private void execute(FakeRequest request) {
        try (FakeBatch batch = new FakeBatch(MODEL, memory, request)) {
            new SquareInstance(new SquareModel(true, 0, 0, 0, 0, 0), () -> 0).execute(batch);
        }
    }
}
