package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the bindings of TensorFlow and ONNX Runtime have in common is the same in both: a correction of one is of both. */
class BindingsTest {
    private static final Path ONNX = Path.of("../backend-onnx/src");
    private static final Path TENSORFLOW = Path.of("src");

    @ParameterizedTest
    @CsvSource({
        "main, onnx/ort/ReferenceCount.java, tensorflow/capi/ReferenceCount.java",
        "test, onnx/ort/ReferenceCountTest.java, tensorflow/capi/ReferenceCountTest.java",
        "main, onnx/OptionValues.java, tensorflow/OptionValues.java"
    })
    void areTheSame(String kind, String onnx, String tensorFlow) throws IOException {
        String java = kind + "/java/dev/nereid/backend/";

        assertThat(text(TENSORFLOW.resolve(java + tensorFlow))).isEqualTo(text(ONNX.resolve(java + onnx)));
    }

    /** Returns a source without the names of package and framework. */
    private static String text(Path source) throws IOException {
        return Files.readString(source)
                .replaceFirst("package [a-z.]+;", "")
                .replaceAll("(Onnx|TensorFlow)Errors", "Errors");
    }
}
