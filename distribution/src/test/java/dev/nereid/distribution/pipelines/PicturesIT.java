package dev.nereid.distribution.pipelines;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import inference.ModelConfigRequest;
import inference.ModelStatistics;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The ensemble of the reference documents: the bytes of a picture in, its class and the classes of its pixels out. */
class PicturesIT {
    private static final double MIN_ACCURACY = 0.95;

    /** A segmentation is right if so many of its pixels are: shapes and outlines have edges that blur between pixels. */
    private static final double MIN_PIXELS = 0.9;

    private static final int SIDE = 224;

    private static Examples examples;
    private static List<ShapePicture> pictures;
    private static List<String> labels;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        pictures = ShapePicture.all();
        labels = Files.readAllLines(
                TestPaths.checkout().resolve("examples/pipeline-models/classification_model/labels.txt"));
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
    void isRightAboutThePicturesThatTheTrainingHeldBack(Examples.Protocol protocol) throws IOException {
        int rightPictures = 0;
        int rightSegmentations = 0;
        double pixels = 0;
        for (ShapePicture picture : pictures) {
            Map<String, byte[]> outputs =
                    examples.infer(protocol, Examples.picture("ensemble_model", "IMAGE", picture.file()));
            float[] scores = TensorBytes.toFloats(outputs.get("CLASSIFICATION"));
            float[] segmentation = TensorBytes.toFloats(outputs.get("SEGMENTATION"));
            assertThat(scores).hasSize(1000);
            assertThat(segmentation).hasSize(ShapePicture.CLASSES * SIDE * SIDE);
            int best = TensorBytes.indexOfLargest(scores);
            rightPictures += best < labels.size() && labels.get(best).equals(picture.label()) ? 1 : 0;
            double share = picture.rightPixels(segmentation);
            rightSegmentations += share >= MIN_PIXELS ? 1 : 0;
            pixels += share;
        }

        assertThat(pictures).hasSize(100);
        assertThat(pictures)
                .filteredOn(picture -> picture.name().endsWith(".png"))
                .hasSize(50);
        assertThat((double) rightPictures / pictures.size()).isGreaterThanOrEqualTo(MIN_ACCURACY);
        assertThat((double) rightSegmentations / pictures.size()).isGreaterThanOrEqualTo(MIN_ACCURACY);
        assertThat(pixels / pictures.size()).isGreaterThanOrEqualTo(MIN_ACCURACY);
    }

    @ParameterizedTest
    @EnumSource
    void aLastStepWritesLabels(Examples.Protocol protocol) throws IOException {
        byte[] star = Files.readAllBytes(TestPaths.checkout().resolve("examples/images/star.png"));
        Map<String, byte[]> outputs =
                examples.infer(protocol, Examples.picture("labeled_classification", "IMAGE", star));

        assertThat(TensorBytes.toStrings(outputs.get("LABELS")))
                .singleElement()
                .asString()
                .matches("\\{\"label\":\"star\",\"score\":[01]\\.\\d{4},\"top\":\\[\\{.*}]}");
    }

    @Test
    void hasTheConfigurationOfTheDocuments() {
        var config = examples.stub()
                .modelConfig(ModelConfigRequest.newBuilder()
                        .setName("ensemble_model")
                        .build())
                .getConfig();

        assertThat(config.getMaxBatchSize()).isOne();
        assertThat(config.getInput(0).getName()).isEqualTo("IMAGE");
        assertThat(config.getInput(0).getDimsList()).containsExactly(1L);
        assertThat(config.getOutput(0).getName()).isEqualTo("CLASSIFICATION");
        assertThat(config.getOutput(0).getDimsList()).containsExactly(1000L);
        assertThat(config.getOutput(1).getName()).isEqualTo("SEGMENTATION");
        assertThat(config.getOutput(1).getDimsList()).containsExactly(3L, 224L, 224L);
        assertThat(config.getEnsembleScheduling().getStepList())
                .extracting(step -> step.getModelName() + step.getInputMapMap() + step.getOutputMapMap())
                .containsExactly(
                        "image_preprocess_model{RAW_IMAGE=IMAGE}{PREPROCESSED_OUTPUT=preprocessed_image}",
                        "classification_model{FORMATTED_IMAGE=preprocessed_image}{CLASSIFICATION_OUTPUT=CLASSIFICATION}",
                        "segmentation_model{FORMATTED_IMAGE=preprocessed_image}{SEGMENTATION_OUTPUT=SEGMENTATION}");
    }

    /** Clients see four models; each responds to direct requests, with statistics of its own. */
    @ParameterizedTest
    @EnumSource
    void eachStepServesClients(Examples.Protocol protocol) throws IOException {
        List<String> models =
                List.of("ensemble_model", "image_preprocess_model", "classification_model", "segmentation_model");
        assertThat(models).allMatch(examples::isReady);
        byte[] file = pictures.getFirst().file();
        Map<String, byte[]> whole = examples.infer(protocol, Examples.picture("ensemble_model", "IMAGE", file));
        List<ModelStatistics> before = models.stream().map(examples::statistics).toList();

        byte[] tensor = examples.infer(protocol, Examples.picture("image_preprocess_model", "RAW_IMAGE", file))
                .get("PREPROCESSED_OUTPUT");
        assertThat(tensor).hasSize(ShapePicture.CLASSES * SIDE * SIDE * Float.BYTES);
        assertThat(examples.infer(protocol, formatted("classification_model", tensor))
                        .get("CLASSIFICATION_OUTPUT"))
                .isEqualTo(whole.get("CLASSIFICATION"));
        assertThat(examples.infer(protocol, formatted("segmentation_model", tensor))
                        .get("SEGMENTATION_OUTPUT"))
                .isEqualTo(whole.get("SEGMENTATION"));

        for (int i = 0; i < models.size(); i++) {
            long requests = examples.statistics(models.get(i)).getInferenceCount()
                    - before.get(i).getInferenceCount();
            assertThat(requests).as(models.get(i)).isEqualTo(i == 0 ? 0 : 1);
        }
    }

    private static ClientRequest formatted(String model, byte[] tensor) {
        return ClientRequest.of(model).input("FORMATTED_IMAGE", "FP32", tensor, 1, 3, SIDE, SIDE);
    }

    @ParameterizedTest
    @EnumSource
    void aBrokenPictureFailsItsOwnRequest(Examples.Protocol protocol) throws IOException {
        byte[] cutOff = Arrays.copyOf(pictures.getFirst().file(), 300);
        assertThatThrownBy(() -> examples.infer(protocol, Examples.picture("ensemble_model", "IMAGE", cutOff)))
                .hasMessageMatching("(400|INVALID_ARGUMENT) in ensemble 'ensemble_model', .*image: broken .*");

        byte[] text = "no picture".getBytes(StandardCharsets.UTF_8);
        assertThatThrownBy(() -> examples.infer(protocol, Examples.picture("ensemble_model", "IMAGE", text)))
                .hasMessageContaining("image: begins with 6e 6f 20 70 (expected: a PNG or JPEG file)");
        assertThat(examples.infer(
                        protocol,
                        Examples.picture(
                                "ensemble_model", "IMAGE", pictures.getFirst().file())))
                .containsOnlyKeys("CLASSIFICATION", "SEGMENTATION");
    }
}
