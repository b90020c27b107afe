package dev.nereid.examples.vision;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/**
 * A model of the backend {@code faces} beside the two that it calls. The detector finds a face on the left and one on the
 * right in a picture that is not gray; the classifier says what the amount of red in a face says.
 */
final class FacesAmongModels {
    private final Consumer<FakeModelRequest> responder;

    /** The requests that the backend has sent. */
    final List<FakeModelRequest> sent = new CopyOnWriteArrayList<>();

    FacesAmongModels() {
        this(FacesAmongModels::respond);
    }

    FacesAmongModels(Consumer<FakeModelRequest> responder) {
        this.responder = responder;
    }

    ContractModel model() {
        return ContractModel.of(ModelSettings.builder("faces", 1)
                        .input(TensorSpec.of("IMAGE", DataType.BYTES, Shape.of(1)))
                        .output(TensorSpec.of("BOXES", DataType.FP32, Shape.of(Shape.VARIABLE, 4)))
                        .output(TensorSpec.of("SCORES", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .output(TensorSpec.of("EXPRESSIONS", DataType.BYTES, Shape.of(Shape.VARIABLE)))
                        .build())
                .withModels(
                        request -> {
                            sent.add(request);
                            responder.accept(request);
                        },
                        "face_detector",
                        "expression_model");
    }

    static void respond(FakeModelRequest request) {
        if (request.model().equals("face_detector")) {
            float face = firstPixel(request, "input") > -0.5f ? 0.9f : 0.1f;
            request.respond(Map.of(
                    "scores",
                    ContractExample.floats(Shape.of(1, 3, 2), 0.1f, face, 0.05f, face + 0.05f, 1 - face, face - 0.01f),
                    "boxes",
                    ContractExample.floats(
                            Shape.of(1, 3, 4), 0.5f, 0, 1, 1, -0.1f, 0, 0.5f, 1, 0.52f, 0.02f, 0.98f, 1)));
        } else {
            boolean red = firstPixel(request, "FACE") > 0;
            request.respond(
                    Map.of("EXPRESSION", ContractExample.floats(Shape.of(1, 3), red ? 0.8f : 0, 0.2f, red ? 0 : 0.8f)));
        }
        request.complete();
    }

    private static float firstPixel(FakeModelRequest request, String input) {
        return request.inputs().get(input).data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
    }
}
