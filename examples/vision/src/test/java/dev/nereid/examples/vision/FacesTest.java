package dev.nereid.examples.vision;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import dev.nereid.testkit.contract.LocalModel;
import dev.nereid.testkit.contract.LocalResponse;
import java.awt.image.BufferedImage;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class FacesTest {
    private static final BufferedImage TWO_FACES = TestImages.halves(40, 20);
    private static final BufferedImage NO_FACE = new BufferedImage(40, 20, BufferedImage.TYPE_BYTE_GRAY);

    @Test
    void requestsTheClassifierOnceForEachFace() {
        FacesAmongModels faces = new FacesAmongModels();
        LocalResponse response = infer(faces, TWO_FACES);

        assertThat(response.output("EXPRESSIONS").strings()).containsExactly("smiling", "sad");
        assertThat(models(faces)).containsExactly("face_detector", "expression_model", "expression_model");
        assertThat(faces.sent).allMatch(request -> request.cause().isPresent());
        assertThat(faces.sent.getLast().inputs().get("FACE").shape()).isEqualTo(Shape.of(1, 3, 48, 48));
    }

    @Test
    void requestsNoClassifierForAPictureWithoutFaces() {
        FacesAmongModels faces = new FacesAmongModels();
        LocalResponse response = infer(faces, NO_FACE);

        assertThat(response.output("BOXES").shape()).isEqualTo(Shape.of(0, 4));
        assertThat(response.output("EXPRESSIONS").strings()).isEmpty();
        assertThat(models(faces)).containsExactly("face_detector");
    }

    @Test
    void failsIfTheDetectorFails() {
        FacesAmongModels faces = new FacesAmongModels(FacesTest::fail);

        assertThat(infer(faces, TWO_FACES).failure())
                .hasValueSatisfying(error -> assertThat(error).hasMessageContaining("no detector today"));
        assertThat(models(faces)).containsExactly("face_detector");
    }

    @Test
    void failsIfTheClassifierFailsForOneFace() {
        int[] classified = new int[1];
        FacesAmongModels faces = new FacesAmongModels(request -> {
            if (request.model().equals("expression_model") && classified[0]++ == 0) {
                fail(request);
            } else {
                FacesAmongModels.respond(request);
            }
        });

        assertThat(infer(faces, TWO_FACES).failure())
                .hasValueSatisfying(error -> assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE));
        assertThat(faces.sent).hasSize(3).allMatch(FakeModelRequest::isComplete);
    }

    @Test
    void failsIfAModelHasOtherOutputs() {
        FacesAmongModels faces = new FacesAmongModels(request -> {
            request.respond(Map.of("OTHER", ContractExample.floats(Shape.of(1), 1)));
            request.complete();
        });

        assertThat(infer(faces, TWO_FACES).failure())
                .hasValueSatisfying(
                        error -> assertThat(error).hasMessageContaining("output 'scores': not in the response"));
    }

    private static void fail(FakeModelRequest request) {
        request.fail(new BackendException(ErrorCode.UNAVAILABLE, "no detector today"));
    }

    private static LocalResponse infer(FacesAmongModels faces, BufferedImage image) {
        ContractExample example = ContractExample.request()
                .input("IMAGE", Tensor.ofByteStrings(Shape.of(1), List.of(TestImages.file("png", image))));
        ContractModel model = faces.model().with(example);
        try (LocalModel local = LocalModel.load(new Faces(), model)) {
            return local.infer(example);
        }
    }

    private static List<String> models(FacesAmongModels faces) {
        return faces.sent.stream().map(FakeModelRequest::model).toList();
    }
}
