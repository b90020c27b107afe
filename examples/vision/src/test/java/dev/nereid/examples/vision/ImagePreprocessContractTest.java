package dev.nereid.examples.vision;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.awt.image.BufferedImage;
import java.nio.charset.StandardCharsets;
import java.util.List;

final class ImagePreprocessContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new ImagePreprocess();
    }

    @Override
    protected ContractModel model() {
        byte[] picture = TestImages.file("png", TestImages.fourColors(BufferedImage.TYPE_INT_RGB));
        return ContractModel.of(ModelSettings.builder("image_preprocess_model", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("RAW_IMAGE", DataType.BYTES, Shape.of(1)))
                        .output(TensorSpec.of("PREPROCESSED_OUTPUT", DataType.FP32, Shape.of(3, 2, 2)))
                        .build())
                .with(example(picture)
                        .output("PREPROCESSED_OUTPUT", Shape.of(1, 3, 2, 2), 1f, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1))
                .with(example("no picture".getBytes(StandardCharsets.UTF_8)).failure("image: begins with 6e 6f 20 70"));
    }

    private static ContractExample example(byte[] file) {
        return ContractExample.request().input("RAW_IMAGE", Tensor.ofByteStrings(Shape.of(1, 1), List.of(file)));
    }
}
