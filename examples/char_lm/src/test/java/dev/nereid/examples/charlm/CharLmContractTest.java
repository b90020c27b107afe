package dev.nereid.examples.charlm;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

final class CharLmContractTest extends BackendContract {
    private static final Path MODEL = Path.of("..", "plugin-models", "char_lm");
    private static final Shape ONE = Shape.of(1, 1);
    private static final Shape STATE = Shape.of(CharLmInstance.STATE);

    @Override
    protected BackendProvider provider() {
        return new CharLmBackendProvider();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("char_lm", 1)
                        .maxBatchSize(16)
                        .decoupled(true)
                        .input(TensorSpec.of("text_input", DataType.BYTES, Shape.of(1)))
                        .output(TensorSpec.of("text_output", DataType.BYTES, Shape.of(1)))
                        .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.OLDEST, Duration.ofSeconds(5))
                                .withIterative()
                                .with(StateSpec.of("state_in", "state_out", DataType.FP32, STATE)))
                        .build())
                .in(MODEL, MODEL.resolve("1"))
                .with(example("The serve").output("text_output", Tensor.ofStrings(ONE, List.of("r"))))
                .with(example("").failure("text_input"));
    }

    private static ContractExample example(String prompt) {
        return ContractExample.request()
                .input("text_input", Tensor.ofStrings(ONE, List.of(prompt)))
                .input("state_in", STATE.prepend(1), new float[CharLmInstance.STATE])
                .parameter("max_tokens", 1)
                .sequence(new Sequence(new Sequence.Id.Numeric(1), true, false));
    }
}
