package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.pytorch.presets.ExecutionMode;
import dev.nereid.backend.pytorch.presets.TorchModule;
import java.nio.file.Path;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files of modules that Python has frozen, as {@code torch.jit.freeze} and {@code optimize_for_inference} leave them. */
final class FrozenFileTest {
    private static final Path NATIVES = Path.of("target", "natives").toAbsolutePath();

    @TempDir
    private Path directory;

    @Test
    void aModuleWithoutAModeIsFrozenAndShared() throws Exception {
        assumeTrue(System.getProperty("os.arch").equals("amd64"), "the libraries of PyTorch are for x86-64");
        PyTorchNatives.load(NATIVES, NATIVES);
        Path file = directory.resolve("model.pt");
        try (JitModule module = new JitModule(new QualifiedName("__torch__.M"), new CompilationUnit(), true)) {
            module.register_parameter("w", torch.ones(2), false);
            module.define("def forward(self, x: Tensor):\n    return x * self.w\n");
            assertThat(module.hasattr("training")).isFalse();
            module.save(file.toString());
        }

        try (TorchModule module = TorchModule.load(file, new ExecutionMode(true, true), false, false)) {
            assertThat(module.isFrozen()).isTrue();
            assertThat(module.effects()).isEqualTo(TorchModule.Effects.NONE);
        }
    }
}
