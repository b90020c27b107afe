package dev.nereid.examples.vision;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.contract.ContractExample;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The backend {@code faces} on a server with two models. The detector finds a face on the left and one on the right in a
 * picture that is not gray; the classifier says what the amount of red in a face says.
 */
final class FacesAmongModels implements BackendProvider {
    private final Faces faces = new Faces();
    final LeakCheckingMemory memory = new LeakCheckingMemory();
    final FakeModelClient client;

    FacesAmongModels() {
        client = new FakeModelClient(memory, FacesAmongModels::respond);
    }

    FacesAmongModels(Consumer<FakeModelRequest> responder) {
        client = new FakeModelClient(memory, responder);
    }

    static ModelSettings settings() {
        return ModelSettings.builder("faces", 1)
                .input(TensorSpec.of("IMAGE", DataType.BYTES, Shape.of(1)))
                .output(TensorSpec.of("BOXES", DataType.FP32, Shape.of(Shape.VARIABLE, 4)))
                .output(TensorSpec.of("SCORES", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .output(TensorSpec.of("EXPRESSIONS", DataType.BYTES, Shape.of(Shape.VARIABLE)))
                .build();
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

    @Override
    public String name() {
        return faces.name();
    }

    @Override
    public Backend create(BackendContext context) {
        Backend backend = faces.create(context);
        return new Backend() {
            @Override
            public BackendTraits traits() {
                return backend.traits();
            }

            @Override
            public Optional<ModelCompletion> complete(ModelContext model) {
                return backend.complete(model);
            }

            @Override
            public Model load(ModelContext model) {
                return backend.load(((FakeModelContext) model).with(client));
            }
        };
    }
}
