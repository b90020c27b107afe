package dev.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ModelLayoutTest {
    @TempDir
    private Path root;

    /** An entry that ends in a slash is a directory. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            mnist/model.onnx                 | mnist | ''         | found mnist/model.onnx; expected mnist/1/model.onnx
            mnist/digits.onnx                | mnist | ''         | found mnist/digits.onnx; expected mnist/1/model.onnx
            mnist/                           | mnist | ''         | found mnist, which is empty; expected mnist/1/model.onnx or the file of another backend
            mnist/                           | mnist | model.plan | found mnist, which is empty; expected mnist/1/model.plan
            mnist/config.pbtxt               | mnist | model.onnx | found mnist/config.pbtxt; expected mnist/1/model.onnx
            mnist/1/                         | mnist | model.onnx | found mnist/1, which is empty; expected mnist/1/model.onnx
            mnist/v1/model.onnx              | mnist | ''         | found mnist/v1; expected mnist/1
            mnist/001/model.onnx             | mnist | ''         | found mnist/001; expected mnist/1
            mnist/version-20/model.onnx      | mnist | ''         | found mnist/version-20; expected mnist/20
            mnist/1/mnist.onnx               | mnist | ''         | found mnist/1/mnist.onnx; expected mnist/1/model.onnx
            mnist/7/net.plan                 | mnist | ''         | found mnist/7/net.plan; expected mnist/7/model.plan
            mnist/1/mnist.onnx               | mnist | net.onnx   | found mnist/1/mnist.onnx; expected mnist/1/net.onnx
            mnist/1/saved_model.pb           | mnist | ''         | found mnist/1/saved_model.pb; expected mnist/1/model.savedmodel/saved_model.pb
            mnist/1/model.savedmodel         | mnist | ''         | found mnist/1/model.savedmodel, a file; expected a directory of that name with saved_model.pb
            mnist/1/model.graphdef/          | mnist | ''         | found mnist/1/model.graphdef, a directory; expected a file of that name with a GraphDef
            1/model.onnx                     | 1     | ''         | found 1/model.onnx; expected MODEL/1/model.onnx: a model repository contains a directory for each model
            """)
    void saysWhatWasFoundAndWhatWasExpectedWhere(String entry, String model, String filename, String hint)
            throws IOException {
        create(entry);

        assertThat(ModelLayout.hint(new ModelDirectory(root, model), filename)).contains(hint);
    }

    @Test
    void hasNoHintForTheRightLayout() throws IOException {
        create("mnist/1/model.onnx");

        assertThat(ModelLayout.hint(new ModelDirectory(root, "mnist"), "model.onnx"))
                .isEmpty();
        assertThat(ModelLayout.hint(new ModelDirectory(root, "mnist"), "")).isEmpty();
        assertThat(ModelLayout.hint(new ModelDirectory(root, "absent"), "")).isEmpty();
        create("saved/1/model.savedmodel/");
        create("frozen/1/model.graphdef");
        assertThat(ModelLayout.hint(new ModelDirectory(root, "saved"), "")).isEmpty();
        assertThat(ModelLayout.hint(new ModelDirectory(root, "frozen"), "")).isEmpty();
    }

    @Test
    void recognizesFilesThatLieInTheRepository() {
        assertThat(ModelLayout.loose(root.resolve("mnist.onnx")))
                .contains("found mnist.onnx; expected mnist/1/model.onnx");
        assertThat(ModelLayout.loose(root.resolve("net.v2.plan")))
                .contains("found net.v2.plan; expected net.v2/1/model.plan");
        assertThat(ModelLayout.loose(root.resolve("config.pbtxt")))
                .contains("found config.pbtxt; expected MODEL/config.pbtxt");
        assertThat(ModelLayout.loose(root.resolve("README.md"))).isEmpty();
    }

    private void create(String entry) throws IOException {
        Path path = root.resolve(entry);
        if (entry.endsWith("/")) {
            Files.createDirectories(path);
        } else {
            Files.createDirectories(path.getParent());
            Files.writeString(path, "");
        }
    }
}
