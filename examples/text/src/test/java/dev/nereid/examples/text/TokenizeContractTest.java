package dev.nereid.examples.text;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;

final class TokenizeContractTest extends BackendContract {
    private static final Path MODEL = Path.of("..", "pipeline-models", "date_tokenizer");

    @Override
    protected BackendProvider provider() {
        return new Tokenize();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("date_tokenizer", 1)
                        .maxBatchSize(64)
                        .input(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1)))
                        .output(TensorSpec.of("TOKENS", DataType.INT64, Shape.of(6)))
                        .build())
                .in(MODEL, MODEL.resolve("1"))
                .with(example("1 May").output("TOKENS", tokens(8, 2, 29, 17, 41, 0)))
                .with(example("Ä0").output("TOKENS", tokens(1, 7, 0, 0, 0, 0)))
                .with(example("").failure("TEXT: 0 characters (expected: 1 to 6)"))
                .with(example("1 April").failure("TEXT: 7 characters (expected: 1 to 6)"));
    }

    private static ContractExample example(String text) {
        return ContractExample.request().input("TEXT", Tensor.ofStrings(Shape.of(1, 1), List.of(text)));
    }

    private static Tensor tokens(long... numbers) {
        return Tensor.of(
                DataType.INT64,
                Shape.of(1, numbers.length),
                Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, numbers));
    }
}
