package dev.nereid.backend.pytorch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;

/**
 * Writes the repository of the tests of the installed server: {@code MakeModels DIRECTORY PLUGIN CACHE}. It runs in a
 * process of its own, since a process can have one copy of PyTorch only.
 */
public final class MakeModels {
    private static final String ADD_SUB = """
            def forward(self, INPUT0: Tensor, INPUT1: Tensor):
                return (INPUT0 + INPUT1, INPUT0 - INPUT1)
            """;

    private static final String SHOUT = """
            def forward(self, TEXT: List[str]) -> List[str]:
                return [text.upper() for text in TEXT]
            """;

    private static final String DICTIONARY = """
            def forward(self, values: Dict[str, Tensor]) -> Dict[str, Tensor]:
                return {"difference": values["a"] - values["b"], "sum": values["a"] + values["b"]}
            """;

    private static final String ACCUMULATOR = """
            def forward(self, value: Tensor, state: Tensor, start: Tensor):
                sum = value + state * (1 - start)
                return (sum, sum)
            """;

    private static final String BEST = """
            def forward(self, probabilities: Tensor):
                best = torch.argmax(probabilities, 1)
                words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
                digits: List[int] = best.tolist()
                return (best, [words[digit] for digit in digits])
            """;

    private static final String PICKY = """
            def forward(self, x: Tensor):
                if bool((x < 0).any()):
                    assert False, "x: below 0 (expected: none)"
                return torch.sqrt(x)
            """;

    private static final String COUNTER = """
            def forward(self, x: Tensor):
                self.count.add_(1)
                return x + self.count
            """;

    private MakeModels() {}

    /** Writes the models. */
    public static void main(String... arguments) throws IOException {
        Path directory = Path.of(arguments[0]);
        PyTorchNatives.load(Path.of(arguments[1]), Path.of(arguments[2]));
        script(directory, "add_sub", ADD_SUB);
        script(directory, "shout", SHOUT);
        script(directory, "dictionary", DICTIONARY);
        script(directory, "accumulator", ACCUMULATOR);
        script(directory, "best", BEST);
        script(directory, "picky", PICKY);
        script(directory, "echo", "def forward(self, x: Tensor):\n    return x\n");
        counter(directory);
        alone(directory);
        Files.writeString(directory.resolve("made"), "");
    }

    private static JitModule module() {
        return new JitModule(new QualifiedName("__torch__.M"), new CompilationUnit(), true);
    }

    private static void script(Path directory, String name, String source) throws IOException {
        JitModule module = module();
        module.define(source);
        save(module, directory, name);
    }

    private static void counter(Path directory) throws IOException {
        JitModule module = module();
        module.register_buffer("count", torch.zeros(1));
        module.define(COUNTER);
        save(module, directory, "counter");
    }

    /** A module with the inputs of its trace, which make a configuration complete. */
    private static void alone(Path directory) throws IOException {
        JitModule module = module();
        module.define("def forward(self, x: Tensor, y: Tensor):\n    return x.sum(1) + y\n");
        try (Tensor matrix = torch.ones(2, 3);
                Tensor vector = torch.ones(2);
                IValueVector inputs = new IValueVector(new IValue(matrix), new IValue(vector))) {
            module.store_traced_inputs("forward", inputs);
        }
        save(module, directory, "alone");
    }

    private static void save(JitModule module, Path directory, String name) throws IOException {
        module.eval();
        Path version = Files.createDirectories(directory.resolve(name).resolve("1"));
        module.save(version.resolve("model.pt").toString());
        module.close();
    }
}
