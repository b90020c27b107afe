package dev.nereid.examples.vision;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.function.AsyncTensorFunction;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Finds the faces in a picture by one model, and classifies each of them by another. Stateless.
 *
 * <p>An ensemble cannot do so: how many requests the second model gets depends on the response of the first. Both are
 * requested without waiting, so that no thread is held, and the faces of several pictures share the batches of the second
 * model. A picture without faces does not reach it.
 */
public final class Faces implements AsyncTensorFunction {
    private static final int MAX_PIXELS = 1 << 24;
    private static final int MAX_FACES = 100;
    private static final String LABELS = "smiling,neutral,sad";
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** For {@code ServiceLoader}. */
    public Faces() {}

    @Override
    public String name() {
        return "faces";
    }

    @Override
    public ModelCompletion completion() {
        return ModelCompletion.EMPTY
                .withMaxBatchSizeLimit(0)
                .withInput("IMAGE", DataType.BYTES, 1)
                .withOutput("BOXES", DataType.FP32, Shape.VARIABLE, 4)
                .withOutput("SCORES", DataType.FP32, Shape.VARIABLE)
                .withOutput("EXPRESSIONS", DataType.BYTES, Shape.VARIABLE);
    }

    @Override
    public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
        byte[] file = PictureFiles.read(request, "IMAGE", PictureFiles.maxBytes(model))
                .getFirst();
        int maxPixels = Settings.positive(model, "max_pixels", MAX_PIXELS);
        int maxFaces = Settings.positive(model, "max_faces", MAX_FACES);
        Picture picture = PictureDecoder.decode(file, maxPixels);
        FaceModels models = new FaceModels(request, model);
        return models.detect(picture, maxFaces)
                .thenCompose(faces -> classify(models, picture, faces))
                .thenAccept(found -> respond(request, model, found));
    }

    /** Requests the expressions of all faces at once; completes when the last one has come, in the order of the faces. */
    private static CompletionStage<List<FaceModels.Expression>> classify(
            FaceModels models, Picture picture, List<Face> faces) {
        List<CompletableFuture<FaceModels.Expression>> open = new ArrayList<>();
        for (Face face : faces) {
            open.add(models.classify(picture, face).toCompletableFuture());
        }
        return CompletableFuture.allOf(open.toArray(CompletableFuture<?>[]::new))
                .thenApply(ignored -> open.stream().map(CompletableFuture::join).toList());
    }

    private static void respond(InferenceRequest request, ModelContext model, List<FaceModels.Expression> found) {
        int count = found.size();
        Tensor boxes = request.response().allocate("BOXES", DataType.FP32, Shape.of(count, 4));
        Tensor scores = request.response().allocate("SCORES", DataType.FP32, Shape.of(count));
        List<String> expressions = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            Face face = found.get(i).face();
            Box box = face.box();
            double[] edges = {box.left(), box.top(), box.right(), box.bottom()};
            for (int k = 0; k < edges.length; k++) {
                boxes.data().set(FLOAT, (4L * i + k) * Float.BYTES, (float) edges[k]);
            }
            scores.data().set(FLOAT, (long) i * Float.BYTES, face.score());
            expressions.add(label(model, found.get(i).number()));
        }
        request.response().put("EXPRESSIONS", Tensor.ofStrings(Shape.of(count), expressions));
    }

    private static String label(ModelContext model, int number) {
        String[] labels = model.parameters().text("labels").orElse(LABELS).split(",", -1);
        if (number >= labels.length) {
            throw new BackendException(
                    ErrorCode.INTERNAL, "expression: " + number + " (expected: below " + labels.length + ")");
        }
        return labels[number].strip();
    }
}
