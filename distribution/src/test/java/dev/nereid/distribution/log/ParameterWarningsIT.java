package dev.nereid.distribution.log;

import dev.nereid.distribution.testing.InstalledServer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Misspelt parameters of models in the log of the installed server. */
@Tag("slow")
final class ParameterWarningsIT {
    @Test
    void aMisspeltParameterGetsASuggestionAndTheModelIsServed(@TempDir Path directory) throws Exception {
        Path original = InstalledServer.MODELS.resolve("add_sub");
        Path model = directory.resolve("add_sub");
        Files.createDirectories(model.resolve("1"));
        Files.copy(original.resolve("1/model.onnx"), model.resolve("1/model.onnx"));
        Files.writeString(
                model.resolve("config.pbtxt"),
                Files.readString(original.resolve("config.pbtxt"))
                        + "parameters { key: \"intra_op_thread_cuont\" value { string_value: \"1\" } }\n");

        try (InstalledServer server = InstalledServer.serve(directory)) {
            server.awaitErr("WARN add_sub - unknown parameter 'intra_op_thread_cuont' has no effect;"
                    + " did you mean 'intra_op_thread_count'?");
        }
    }
}
