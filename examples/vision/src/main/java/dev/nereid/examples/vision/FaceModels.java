package dev.nereid.examples.vision;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * The two models that find and classify faces, on behalf of one request. Immutable. No method waits for a model.
 *
 * @param model the model that got it; names the others in its parameters {@code detector} and {@code classifier}
 */
record FaceModels(InferenceRequest cause, ModelContext model) {
    private static final float[] MEANS = {127f / 255, 127f / 255, 127f / 255};
    private static final float[] DEVIATIONS = {128f / 255, 128f / 255, 128f / 255};
    private static final Normalization NORMALIZATION = new Normalization(MEANS, DEVIATIONS);
    private static final Planes SEARCHED = new Planes(320, 240, NORMALIZATION);
    private static final Planes CUT = new Planes(48, 48, NORMALIZATION);
    private static final float MIN_SCORE = 0.8f;
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    CompletionStage<List<Face>> detect(Picture picture, int limit) {
        Box whole = new Box(0, 0, picture.width(), picture.height());
        return request(
                name("detector", "face_detector"),
                "input",
                SEARCHED,
                picture,
                whole,
                response -> Face.select(
                        response.requireOutput("scores"), response.requireOutput("boxes"), picture, MIN_SCORE, limit));
    }

    CompletionStage<Expression> classify(Picture picture, Face face) {
        return request(
                name("classifier", "expression_model"),
                "FACE",
                CUT,
                picture,
                face.box(),
                response -> new Expression(face, best(response.requireOutput("EXPRESSION"))));
    }

    private String name(String parameter, String standard) {
        return model.parameters().text(parameter).orElse(standard);
    }

    /** Sends a part of a picture to a model. Its memory is freed when the response is read, or the request has failed. */
    private <T> CompletionStage<T> request(
            String name, String input, Planes form, Picture picture, Box part, ResponseReader<T> reader) {
        Arena arena = Arena.ofShared();
        try {
            MemorySegment pixels = arena.allocate(form.byteSize());
            form.write(picture, part, pixels);
            Shape shape = Shape.of(1, Picture.CHANNELS, form.height(), form.width());
            return model.models()
                    .request(name)
                    .onBehalfOf(cause)
                    .input(input, Tensor.of(DataType.FP32, shape, pixels))
                    .send()
                    .thenApply(response -> read(response, reader))
                    .whenComplete((result, failure) -> arena.close());
        } catch (RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    private static <T> T read(ModelResponse response, ResponseReader<T> reader) {
        try (response) {
            return reader.read(response);
        }
    }

    /** Reads what is needed of a response, which is closed afterwards. */
    @FunctionalInterface
    private interface ResponseReader<T> {
        T read(ModelResponse response);
    }

    private static int best(Tensor probabilities) {
        int count = Math.toIntExact(probabilities.shape().elementCount());
        if (count == 0) {
            throw new BackendException(ErrorCode.INTERNAL, "EXPRESSION: empty (expected: probabilities)");
        }
        int best = 0;
        for (int i = 1; i < count; i++) {
            if (at(probabilities, i) > at(probabilities, best)) {
                best = i;
            }
        }
        return best;
    }

    private static float at(Tensor tensor, int index) {
        return tensor.data().get(FLOAT, (long) index * Float.BYTES);
    }

    /** A face and what it expresses. Immutable. */
    record Expression(Face face, int number) {}
}
