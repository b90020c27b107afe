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
import java.nio.file.Path;
import java.util.List;

final class DecodeContractTest extends BackendContract {
    private static final Path MODEL = Path.of("..", "pipeline-models", "date_decoder");
    private static final int SYMBOLS = 11;

    @Override
    protected BackendProvider provider() {
        return new Decode();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("date_decoder", 1)
                        .maxBatchSize(64)
                        .input(TensorSpec.of("SYMBOLS", DataType.FP32, Shape.of(3, SYMBOLS)))
                        .output(TensorSpec.of("TEXT", DataType.BYTES, Shape.of(1)))
                        .output(TensorSpec.of("CONFIDENCE", DataType.FP32, Shape.of(1)))
                        .build())
                .in(MODEL, MODEL.resolve("1"))
                .with(example("7-0", 0.125f, 7, 10, 0))
                .with(example("942", 0.125f, 9, 4, 2));
    }

    private static ContractExample example(String text, float confidence, int... best) {
        float[] probabilities = new float[best.length * SYMBOLS];
        for (int place = 0; place < best.length; place++) {
            probabilities[place * SYMBOLS + best[place]] = 0.5f;
        }
        return ContractExample.request()
                .input("SYMBOLS", Shape.of(1, best.length, SYMBOLS), probabilities)
                .output("TEXT", Tensor.ofStrings(Shape.of(1, 1), List.of(text)))
                .output("CONFIDENCE", Shape.of(1, 1), confidence);
    }
}
