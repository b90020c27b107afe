package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.onnx.ort.OrtLog;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeModelContext;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OnnxLogTest {
    @ParameterizedTest
    @CsvSource({"VERBOSE, TRACE", "INFO, DEBUG", "WARNING, DEBUG", "ERROR, DEBUG", "FATAL, ERROR"})
    void remarksOfOnnxRuntimeAreOnlyInAVerboseLog(OrtLog.Severity severity, System.Logger.Level level) {
        FakeModelContext context =
                TestBackend.model(ModelSettings.builder("m", 1).build(), 1);

        OnnxLog.of(context).log().write(severity, "graph.cc", "Removing initializer 'w'");

        assertThat(context.logger().lines()).containsExactly(level + " Removing initializer 'w'");
    }
}
