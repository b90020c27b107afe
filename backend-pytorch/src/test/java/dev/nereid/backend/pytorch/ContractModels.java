package dev.nereid.backend.pytorch;

import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.contract.ContractModel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Makes the models of the contract tests. Static functions only. */
final class ContractModels {
    private ContractModels() {}

    static ContractModel of(Path directory, TestModels.Script script, ModelSettings settings) {
        try {
            Path version = Files.createDirectories(directory.resolve("1"));
            if (!Files.exists(version.resolve("model.pt"))) {
                script.save(version.resolve("model.pt"));
            }
            return ContractModel.of(settings).in(directory, version).withCache(TestModels.CACHE);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
