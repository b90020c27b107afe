package dev.nereid.backend.tensorflow;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.tensorflow.Graph;
import org.tensorflow.Operand;
import org.tensorflow.Session;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.op.Ops;
import org.tensorflow.op.core.Placeholder;
import org.tensorflow.op.core.VarHandleOp;
import org.tensorflow.proto.DataType;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.family.TType;

/**
 * Writes the repository of the tests of the installed server: {@code MakeModels DIRECTORY TRAINING_DATA}. It runs in a
 * process of its own, since its protobuf is another than the server's.
 */
public final class MakeModels {
    private MakeModels() {}

    /** Writes the models. */
    public static void main(String... arguments) throws IOException {
        Path directory = Path.of(arguments[0]);
        DigitsTraining.run(
                Path.of(arguments[1]),
                directory.resolve("digits_tf/1").resolve(TestModels.SAVED_MODEL),
                directory.resolve("digits_onnx/1/model.onnx"));
        TestModels.variable(directory.resolve("variable/1"));
        oldestStateful(directory.resolve("oldest_stateful_model/1"));
        accumulator(directory.resolve("accumulator_tf/1"));
        perceptron(directory.resolve("mlp_tf/1"));
        convolutions(directory.resolve("convolutions_tf/1"));
        new GraphFiles()
                .placeholder("x", DataType.DT_FLOAT, -1, -1)
                .operation("y", "Identity", DataType.DT_FLOAT, "x")
                .write(directory.resolve("echo_tf/1/model.graphdef"));
        Files.writeString(directory.resolve("made"), "");
    }

    /** The model of the document's example of the strategy Oldest: OUTPUT = sum of INPUT, START, END, CORRID, and zeros. */
    private static void oldestStateful(Path version) {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> input = placeholder(tf, "INPUT", -1, 100, 100);
            Placeholder<TFloat32> start = placeholder(tf, "START", -1, 1);
            Placeholder<TFloat32> end = placeholder(tf, "END", -1, 1);
            Operand<?> id = graph.baseScope()
                    .env()
                    .opBuilder("Placeholder", "CORRID", graph.baseScope())
                    .setAttr("dtype", DataType.DT_UINT64)
                    .setAttr("shape", Shape.of(-1, 1))
                    .build()
                    .output(0);
            Operand<TFloat32> number = graph.baseScope()
                    .env()
                    .opBuilder("Cast", "number", graph.baseScope())
                    .addInput(id.asOutput())
                    .setAttr("DstT", DataType.DT_FLOAT)
                    .build()
                    .output(0);
            Operand<TFloat32> sum = tf.expandDims(tf.sum(input, tf.constant(new int[] {1, 2})), tf.constant(1));
            Operand<TFloat32> zeros = tf.tile(tf.math.mul(start, tf.constant(0f)), tf.constant(new int[] {1, 6}));
            Operand<TFloat32> output =
                    tf.withName("OUTPUT").concat(List.of(sum, start, end, number, zeros), tf.constant(1));
            new SavedModelFiles(graph)
                    .input("INPUT", input)
                    .input("START", start)
                    .input("END", end)
                    .input("CORRID", id)
                    .output("OUTPUT", output)
                    .write(session, version.resolve(TestModels.SAVED_MODEL));
        }
    }

    /** A model whose state the server keeps: OUTPUT = STATE_OUT = INPUT + STATE_IN. */
    private static void accumulator(Path version) {
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> input = placeholder(tf, "INPUT", -1, 1);
            Placeholder<TFloat32> state = placeholder(tf, "STATE_IN", -1, 1);
            Operand<TFloat32> sum = tf.math.add(input, state);
            new SavedModelFiles(graph)
                    .input("INPUT", input)
                    .input("STATE_IN", state)
                    .output("OUTPUT", tf.identity(sum))
                    .output("STATE_OUT", sum)
                    .write(session, version.resolve(TestModels.SAVED_MODEL));
        }
    }

    /** A model of three layers with random weights: 256, 512, 512, 64. */
    private static void perceptron(Path version) {
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> input = placeholder(tf, "features", -1, 256);
            SavedModelFiles files = new SavedModelFiles(graph).input("features", input);
            Operand<TFloat32> layer = input;
            int[] sizes = {256, 512, 512, 64};
            for (int i = 0; i + 1 < sizes.length; i++) {
                Operand<TFloat32> weights = weights(session, tf, files, "w" + i, sizes[i], sizes[i + 1]);
                layer = tf.nn.relu(tf.linalg.matMul(layer, weights));
            }
            files.output("scores", tf.withName("scores").identity(layer))
                    .write(session, version.resolve(TestModels.SAVED_MODEL));
        }
    }

    /** A model of two convolutions and a layer with random weights, for images of 28 x 28. */
    private static void convolutions(Path version) {
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> input = placeholder(tf, "image", -1, 28, 28, 1);
            SavedModelFiles files = new SavedModelFiles(graph).input("image", input);
            Operand<TFloat32> layer = input;
            int[] channels = {1, 32, 64};
            for (int i = 0; i + 1 < channels.length; i++) {
                Operand<TFloat32> weights = weights(session, tf, files, "c" + i, 5, 5, channels[i], channels[i + 1]);
                layer = tf.nn.relu(tf.nn.conv2d(layer, weights, List.of(1L, 1L, 1L, 1L), "SAME"));
                layer = tf.nn.maxPool(
                        layer, tf.constant(new int[] {1, 2, 2, 1}), tf.constant(new int[] {1, 2, 2, 1}), "SAME");
            }
            layer = tf.reshape(layer, tf.constant(new int[] {-1, 7 * 7 * 64}));
            Operand<TFloat32> scores = tf.linalg.matMul(layer, weights(session, tf, files, "w", 7 * 7 * 64, 10));
            files.output("scores", tf.withName("scores").identity(scores))
                    .write(session, version.resolve(TestModels.SAVED_MODEL));
        }
    }

    /** Adds a variable of random values to a model. */
    private static Operand<TFloat32> weights(Session session, Ops tf, SavedModelFiles files, String name, int... dims) {
        long[] shape = Arrays.stream(dims).asLongStream().toArray();
        Operand<? extends TType> handle = tf.varHandleOp(TFloat32.class, Shape.of(shape), VarHandleOp.sharedName(name));
        Operand<TFloat32> values = tf.math.mul(
                tf.random.statelessRandomUniform(
                        tf.constant(dims), tf.constant(new int[] {7, dims.length}), TFloat32.class),
                tf.constant(0.01f));
        session.runner().addTarget(tf.assignVariableOp(handle, values)).run();
        files.variable(name, handle, TFloat32.class);
        return tf.readVariableOp(handle, TFloat32.class);
    }

    private static Placeholder<TFloat32> placeholder(Ops tf, String name, long... dims) {
        return tf.withName(name).placeholder(TFloat32.class, Placeholder.shape(Shape.of(dims)));
    }
}
