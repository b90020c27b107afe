package dev.nereid.distribution.pipelines;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Faces that one model finds and another classifies: how many requests that takes depends on the picture. */
class FacesIT {
    private static final double MIN_ACCURACY = 0.95;
    private static final int PICTURES = 16;
    private static final Path TRAINING = TestPaths.checkout().resolve("examples/training");

    private static Examples examples;
    private static List<DrawnFace> drawn;

    /** A face of a picture: its file, the left edge, the right edge, and the expression. */
    private record DrawnFace(String file, float left, float right, String expression) {
        static DrawnFace parse(String line) {
            String[] parts = line.split(",", -1);
            return new DrawnFace(parts[0], Float.parseFloat(parts[1]), Float.parseFloat(parts[3]), parts[5]);
        }

        /** Says whether the middle of a box is in the middle of the face. */
        boolean isAt(float boxLeft, float boxRight) {
            return Math.abs(boxLeft + boxRight - left - right) < (right - left) / 2;
        }
    }

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        drawn = Files.readAllLines(TRAINING.resolve("faces.csv")).stream()
                .map(DrawnFace::parse)
                .sorted(Comparator.comparingDouble(DrawnFace::left))
                .toList();
        examples = Examples.serve();
    }

    @AfterAll
    static void stop() throws IOException {
        if (examples != null) {
            examples.close();
            assertThat(examples.server().server().memory().bytesInUse()).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource
    void findsAndClassifiesTheFacesThatTheTrainingHeldBack(Examples.Protocol protocol) throws IOException {
        int right = 0;
        for (int number = 0; number < PICTURES; number++) {
            String file = number + ".jpg";
            List<DrawnFace> faces =
                    drawn.stream().filter(face -> face.file().equals(file)).toList();
            Map<String, byte[]> outputs =
                    examples.infer(protocol, request(Files.readAllBytes(TRAINING.resolve("faces/" + file))));
            List<String> expressions = TensorBytes.toStrings(outputs.get("EXPRESSIONS"));
            float[] boxes = TensorBytes.toFloats(outputs.get("BOXES"));
            assertThat(expressions).as(file).hasSameSizeAs(faces);
            for (int i = 0; i < faces.size(); i++) {
                assertThat(faces.get(i).isAt(boxes[4 * i], boxes[4 * i + 2]))
                        .as("%s, face %d", file, i)
                        .isTrue();
                right += expressions.get(i).equals(faces.get(i).expression()) ? 1 : 0;
            }
        }

        assertThat(drawn).hasSizeGreaterThan(25);
        assertThat((double) right / drawn.size()).isGreaterThanOrEqualTo(MIN_ACCURACY);
    }

    @ParameterizedTest
    @EnumSource
    void aPictureWithoutFacesDoesNotReachTheClassifier(Examples.Protocol protocol) throws IOException {
        long before = examples.statistics("expression_model").getInferenceCount();
        byte[] star = Files.readAllBytes(TestPaths.checkout().resolve("examples/images/star.png"));
        Map<String, byte[]> outputs = examples.infer(protocol, request(star));

        assertThat(outputs.values()).hasSize(3).allMatch(output -> output.length == 0);
        assertThat(examples.statistics("expression_model").getInferenceCount()).isEqualTo(before);
        byte[] three = Files.readAllBytes(TestPaths.checkout().resolve("examples/images/faces.jpg"));
        assertThat(TensorBytes.toStrings(
                        examples.infer(protocol, request(three)).get("EXPRESSIONS")))
                .containsExactly("smiling", "neutral", "sad");
        assertThat(examples.statistics("expression_model").getInferenceCount()).isEqualTo(before + 3);
    }

    @ParameterizedTest
    @EnumSource
    void refusesWhatIsNoPicture(Examples.Protocol protocol) throws IOException {
        assertThatThrownBy(() -> examples.infer(protocol, request("text".getBytes(StandardCharsets.UTF_8))))
                .hasMessageMatching("(400|INVALID_ARGUMENT) .*image: begins with 74 65 78 74 .*");

        byte[] cutOff = Files.readAllBytes(TRAINING.resolve("faces/1.jpg"));
        assertThatThrownBy(() -> examples.infer(protocol, request(Arrays.copyOf(cutOff, 2000))))
                .hasMessageContaining("image: broken JPEG file");
    }

    private static ClientRequest request(byte[] file) {
        return ClientRequest.of("faces").input("IMAGE", "BYTES", TensorBytes.byteStrings(file), 1);
    }
}
