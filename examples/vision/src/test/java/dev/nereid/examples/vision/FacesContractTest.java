package dev.nereid.examples.vision;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.awt.image.BufferedImage;
import java.util.List;

final class FacesContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new Faces();
    }

    @Override
    protected ContractModel model() {
        return new FacesAmongModels()
                .model()
                .with(example(TestImages.halves(40, 20))
                        .output("BOXES", Shape.of(2, 4), 0f, 0, 20, 20, 20, 0, 40, 20)
                        .output("SCORES", Shape.of(2), 0.95f, 0.9f)
                        .output("EXPRESSIONS", Tensor.ofStrings(Shape.of(2), List.of("smiling", "sad"))))
                .with(example(new BufferedImage(40, 20, BufferedImage.TYPE_BYTE_GRAY))
                        .output("BOXES", Shape.of(0, 4), new float[0])
                        .output("SCORES", Shape.of(0), new float[0])
                        .output("EXPRESSIONS", Tensor.ofStrings(Shape.of(0), List.of())))
                .with(ContractExample.request()
                        .input("IMAGE", Tensor.ofByteStrings(Shape.of(1), List.of(new byte[0])))
                        .failure("image: empty"));
    }

    private static ContractExample example(BufferedImage image) {
        byte[] file = TestImages.file("png", image);
        return ContractExample.request().input("IMAGE", Tensor.ofByteStrings(Shape.of(1), List.of(file)));
    }
}
