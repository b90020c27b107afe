package dev.nereid.backend.pytorch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;

/**
 * Writes model repositories with models of TorchScript that are compiled by PyTorch itself: ResNet-18 with random weights, and
 * a linear layer.
 *
 * <p>Arguments: the directory of the plugin, one to unpack PyTorch into, and that of the repository.
 */
public final class MakeNetworks {
    private static final long SEED = 1;
    private static final int[] WIDTHS = {64, 128, 256, 512};
    private static final int CLASSES = 1000;

    private MakeNetworks() {}

    /** Writes the models. */
    public static void main(String[] arguments) throws IOException {
        PyTorchNatives.load(Path.of(arguments[0]), Path.of(arguments[1]));
        Path repository = Path.of(arguments[2]);
        torch.manual_seed(SEED);
        try (NoGradGuard _ = new NoGradGuard()) {
            resnet18(file(repository, "resnet18"));
            linear(file(repository, "linear"));
        }
    }

    private static Path file(Path repository, String model) throws IOException {
        return Files.createDirectories(repository.resolve(model).resolve("1")).resolve("model.pt");
    }

    /** A linear layer of 64 inputs and 10 outputs. */
    static void linear(Path file) {
        Map<String, Tensor> weights = new TreeMap<>();
        weights.put("w", torch.rand(10, 64));
        weights.put("b", torch.rand(10));
        save(file, "def forward(self, x: Tensor) -> Tensor:\n    return torch.linear(x, self.w, self.b)\n", weights);
    }

    /** ResNet-18 for images of 3 x 224 x 224. */
    static void resnet18(Path file) {
        Network network = new Network();
        network.convolution("x", "x", 3, WIDTHS[0], 7, 2);
        network.line("x = torch.max_pool2d(torch.relu_(x), [3, 3], [2, 2], [1, 1])");
        int width = WIDTHS[0];
        for (int next : WIDTHS) {
            for (int block = 0; block < 2; block++) {
                int stride = block == 0 && next != width ? 2 : 1;
                network.line("i = x");
                network.convolution("x", "x", width, next, 3, stride);
                network.line("x = torch.relu_(x)");
                network.convolution("x", "x", next, next, 3, 1);
                if (stride != 1) {
                    network.convolution("i", "i", width, next, 1, stride);
                }
                network.line("x = torch.relu_(x.add_(i))");
                width = next;
            }
        }
        network.line("x = torch.flatten(torch.adaptive_avg_pool2d(x, [1, 1]), 1)");
        network.weights.put("w_fc", torch.randn(CLASSES, width).mul_(new org.bytedeco.pytorch.Scalar(0.05)));
        network.weights.put("b_fc", torch.rand(CLASSES));
        network.line("return torch.linear(x, self.w_fc, self.b_fc)");
        save(file, network.source.toString(), network.weights);
    }

    /** The source of a network, and its weights by name. */
    private static final class Network {
        final StringBuilder source = new StringBuilder("def forward(self, x: Tensor) -> Tensor:\n");
        final Map<String, Tensor> weights = new TreeMap<>();
        private int layers;

        void line(String text) {
            source.append("    ").append(text).append('\n');
        }

        /** Adds a convolution with batch normalization in the mode of evaluation. */
        void convolution(String to, String from, int inputs, int outputs, int size, int stride) {
            String name = String.valueOf(layers++);
            double scale = Math.sqrt(2.0 / (inputs * size * size));
            weights.put(
                    "w" + name, torch.randn(outputs, inputs, size, size).mul_(new org.bytedeco.pytorch.Scalar(scale)));
            weights.put("g" + name, torch.rand(outputs));
            weights.put("b" + name, torch.rand(outputs));
            weights.put("m" + name, torch.zeros(outputs));
            weights.put("v" + name, torch.ones(outputs));
            int padding = size / 2;
            line(to + " = torch.batch_norm(torch.conv2d(" + from + ", self.w" + name + ", None, [" + stride + ", "
                    + stride + "], [" + padding + ", " + padding + "]), self.g" + name + ", self.b" + name + ", self.m"
                    + name + ", self.v" + name + ", False, 0.1, 1e-5, False)");
        }
    }

    private static void save(Path file, String source, Map<String, Tensor> weights) {
        JitModule module = new JitModule(new QualifiedName("__torch__.Model"), new CompilationUnit(), true);
        weights.forEach((name, weight) -> module.register_buffer(name, weight));
        module.define(source);
        module.eval();
        module.save(file.toString());
        module.close();
    }
}
