package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.ModelInferResponse;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The served accuracy of the bundled classifier, compared with its training. */
class DigitsAccuracyIT {
    private static final int BATCH = 32;
    private static final int CLASSES = 10;
    private static final float INK = 16;
    private static final double MIN_ACCURACY = 0.97;

    /** A test image: its label, and 64 pixels from 0 to 1. */
    @SuppressWarnings("ArrayRecordComponent") // Never compared.
    private record Digit(int label, float[] pixels) {
        static Digit parse(String line) {
            int[] numbers =
                    Arrays.stream(line.split(",")).mapToInt(Integer::parseInt).toArray();
            float[] pixels = new float[numbers.length - 1];
            for (int i = 0; i < pixels.length; i++) {
                pixels[i] = numbers[i + 1] / INK;
            }
            return new Digit(numbers[0], pixels);
        }
    }

    @Test
    void recognizesAsManyTestImagesAsItsTrainingReported() throws IOException, InterruptedException {
        Path examples = TestPaths.checkout().resolve("examples");
        List<Digit> digits;
        try (var lines = Files.lines(examples.resolve("training/digits_test.csv"))) {
            digits = lines.map(Digit::parse).toList();
        }
        int right = 0;
        try (TestServer server =
                TestServer.open(NereidServer.start(TestServer.of(new Repository(examples.resolve("models")))))) {
            ManagedChannel channel = server.grpc();
            GRPCInferenceServiceBlockingStub stub =
                    GRPCInferenceServiceGrpc.newBlockingStub(channel).withDeadlineAfter(60, TimeUnit.SECONDS);
            for (int from = 0; from < digits.size(); from += BATCH) {
                right += right(stub, digits.subList(from, Math.min(from + BATCH, digits.size())));
            }
            channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
        }

        double accuracy = (double) right / digits.size();
        assertThat("%d of %d = %.4f".formatted(right, digits.size(), accuracy))
                .isEqualTo(Files.readString(examples.resolve("training/digits_accuracy.txt"))
                        .strip());
        assertThat(accuracy).isGreaterThanOrEqualTo(MIN_ACCURACY);
    }

    /** Requests the labels of a batch and counts the correct ones. */
    private static int right(GRPCInferenceServiceBlockingStub stub, List<Digit> batch) {
        float[] pixels = new float[batch.size() * 64];
        for (int i = 0; i < batch.size(); i++) {
            System.arraycopy(batch.get(i).pixels(), 0, pixels, i * 64, 64);
        }
        ModelInferResponse response = stub.modelInfer(ClientRequest.of("digits")
                .input("image", "FP32", TensorBytes.floats(pixels), batch.size(), 1, 8, 8)
                .overGrpc());
        float[] probabilities =
                TensorBytes.toFloats(response.getRawOutputContents(0).toByteArray());
        int right = 0;
        for (int i = 0; i < batch.size(); i++) {
            float[] row = Arrays.copyOfRange(probabilities, i * CLASSES, (i + 1) * CLASSES);
            right += TensorBytes.indexOfLargest(row) == batch.get(i).label() ? 1 : 0;
        }
        return right;
    }
}
