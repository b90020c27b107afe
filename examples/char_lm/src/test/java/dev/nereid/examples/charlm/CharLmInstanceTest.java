package dev.nereid.examples.charlm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.FakeSender;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class CharLmInstanceTest {
    private static final Path WEIGHTS = Path.of("../plugin-models/char_lm/1/weights.bin");
    private static final ModelSettings MODEL = ModelSettings.builder("char_lm", 1)
            .maxBatchSize(4)
            .decoupled(true)
            .input(TensorSpec.of("text_input", DataType.BYTES, Shape.of(1)))
            .output(TensorSpec.of("text_output", DataType.BYTES, Shape.of(1)))
            .build();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeSender sender = new FakeSender(memory);

    private FakeRequest request(String prompt, long maxTokens) {
        return new FakeRequest(1, List.of("text_output"))
                .with("text_input", Tensor.ofStrings(Shape.of(1, 1), List.of(prompt)))
                .with(
                        "state_in",
                        Tensor.of(
                                DataType.FP32,
                                Shape.of(1, CharLmInstance.STATE),
                                Arena.ofAuto().allocate(Float.BYTES * (long) CharLmInstance.STATE)))
                .with(sender)
                .withState("state_out", memory)
                .withParameter("max_tokens", maxTokens)
                .withSequence(new Sequence(new Sequence.Id.Numeric(1), true, false))
                .asIterative();
    }

    private void execute(FakeRequest request) throws IOException {
        CharLmInstance instance = new CharLmInstance(CharNetwork.of(Files.readAllBytes(WEIGHTS)));
        try (FakeBatch batch = new FakeBatch(MODEL, memory, request)) {
            instance.execute(batch);
            sender.close();
        }
    }

    @Test
    void writesOneCharacterAndWantsToGoOn() throws Exception {
        FakeRequest request = request("The server ", 2);
        execute(request);
        assertThat(request.isRescheduled()).isTrue();
        assertThat(request.writtenState("state_out")).isPresent();
    }

    @Test
    void endsWithTheLastCharacter() throws Exception {
        FakeRequest request = request("The server ", 1);
        execute(request);
        assertThat(request.isRescheduled()).isFalse();
        assertThat(sender.hasEnded()).isTrue();
    }

    @Test
    void refusesAnEmptyPrompt() throws Exception {
        FakeRequest request = request("", 1);
        execute(request);
        assertThat(request.failure())
                .get()
                .extracting(BackendException::getMessage)
                .asString()
                .contains("text_input");
    }

    @Test
    void refusesOtherWeights() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> CharNetwork.of(new byte[3]))
                .withMessageContaining("weights.bin: 3 bytes");
    }
}
