package dev.nereid.backend.tensorflow;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.tensorflow.Graph;
import org.tensorflow.Operand;
import org.tensorflow.Output;
import org.tensorflow.Session;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.ndarray.StdArrays;
import org.tensorflow.op.Op;
import org.tensorflow.op.Ops;
import org.tensorflow.op.core.Placeholder;
import org.tensorflow.op.core.VarHandleOp;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.family.TType;

/**
 * Trains a perceptron on scikit-learn's handwritten digits with TensorFlow Java, and writes it as a SavedModel with
 * resource variables, and its weights as an ONNX model.
 */
final class DigitsTraining {
    private static final int PIXELS = 64;
    private static final int HIDDEN = 96;
    private static final int CLASSES = 10;
    private static final int BATCH = 64;
    private static final int EPOCHS = 60;
    private static final float INK = 16;
    private static final float RATE = 0.1f;
    private static final float MOMENTUM = 0.9f;
    private static final long SEED = 2026;

    private final Graph graph;
    private final Session session;
    private final Ops tf;
    private final List<Parameter> parameters = new ArrayList<>();
    private final List<Op> updates = new ArrayList<>();

    /** A resource variable, its value in the graph, and what the optimizer keeps for it. */
    private record Parameter(
            String name, Operand<? extends TType> handle, Operand<TFloat32> value, Operand<? extends TType> momentum) {}

    private DigitsTraining(Graph graph, Session session) {
        this.graph = graph;
        this.session = session;
        tf = Ops.create(graph);
    }

    /** Trains with the images in {@code data}, and writes both models. */
    static void run(Path data, Path savedModel, Path onnx) throws IOException {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            new DigitsTraining(graph, session).trainAndWrite(data, savedModel, onnx);
        }
    }

    private void trainAndWrite(Path data, Path savedModel, Path onnx) throws IOException {
        Random random = new Random(SEED);
        Placeholder<TFloat32> pixels =
                tf.withName("pixels").placeholder(TFloat32.class, Placeholder.shape(Shape.of(-1, PIXELS)));
        Placeholder<TFloat32> labels =
                tf.withName("labels").placeholder(TFloat32.class, Placeholder.shape(Shape.of(-1, CLASSES)));
        Operand<TFloat32> w1 = parameter("w1", random(random, PIXELS, HIDDEN));
        Operand<TFloat32> b1 = parameter("b1", new float[1][HIDDEN]);
        Operand<TFloat32> w2 = parameter("w2", random(random, HIDDEN, CLASSES));
        Operand<TFloat32> b2 = parameter("b2", new float[1][CLASSES]);
        Operand<TFloat32> hidden = tf.nn.relu(tf.math.add(tf.linalg.matMul(pixels, w1), b1));
        Operand<TFloat32> logits = tf.math.add(tf.linalg.matMul(hidden, w2), b2);
        Operand<TFloat32> scores = tf.withName("scores").nn.softmax(logits);
        Operand<TFloat32> loss =
                tf.math.mean(tf.nn.softmaxCrossEntropyWithLogits(logits, labels).loss(), tf.constant(0));
        minimize(loss);
        train(data, pixels, labels, random);
        SavedModelFiles files =
                new SavedModelFiles(graph).input("pixels", pixels).output("scores", scores);
        parameters.forEach(parameter -> files.variable(parameter.name(), parameter.handle(), TFloat32.class));
        files.write(session, savedModel);
        Files.createDirectories(onnx.getParent());
        Files.write(onnx, OnnxFile.perceptron(value("w1"), value("b1")[0], value("w2"), value("b2")[0]));
    }

    private Operand<TFloat32> parameter(String name, float[][] initial) {
        Shape shape = Shape.of(initial.length, initial[0].length);
        Operand<? extends TType> handle = variable(name, shape);
        Operand<? extends TType> momentum = variable(name + "_momentum", shape);
        session.runner()
                .addTarget(tf.assignVariableOp(handle, tf.constant(initial)))
                .addTarget(tf.assignVariableOp(momentum, tf.constant(new float[initial.length][initial[0].length])))
                .run();
        Operand<TFloat32> value = tf.readVariableOp(handle, TFloat32.class);
        parameters.add(new Parameter(name, handle, value, momentum));
        return value;
    }

    /** Without a shared name all variables would be one. */
    private Operand<? extends TType> variable(String name, Shape shape) {
        return tf.withName(name).varHandleOp(TFloat32.class, shape, VarHandleOp.sharedName(name));
    }

    private void minimize(Operand<TFloat32> loss) {
        Output<?>[] values = parameters.stream()
                .map(parameter -> parameter.value().asOutput())
                .toArray(Output<?>[]::new);
        Output<?>[] gradients = graph.addGradients(loss.asOutput(), values);
        for (int i = 0; i < values.length; i++) {
            @SuppressWarnings("unchecked") // the gradient of a value has its type
            Operand<TFloat32> gradient = (Operand<TFloat32>) gradients[i];
            Parameter parameter = parameters.get(i);
            updates.add(tf.train.resourceApplyMomentum(
                    parameter.handle(), parameter.momentum(), tf.constant(RATE), gradient, tf.constant(MOMENTUM)));
        }
    }

    private void train(Path data, Placeholder<TFloat32> pixels, Placeholder<TFloat32> labels, Random random)
            throws IOException {
        List<int[]> images;
        try (var lines = Files.lines(data)) {
            images = new ArrayList<>(lines.map(line -> Arrays.stream(line.split(","))
                            .mapToInt(Integer::parseInt)
                            .toArray())
                    .toList());
        }
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            Collections.shuffle(images, random);
            for (int from = 0; from < images.size(); from += BATCH) {
                step(images.subList(from, Math.min(from + BATCH, images.size())), pixels, labels);
            }
        }
    }

    private void step(List<int[]> images, Placeholder<TFloat32> pixels, Placeholder<TFloat32> labels) {
        float[][] inputs = new float[images.size()][PIXELS];
        float[][] targets = new float[images.size()][CLASSES];
        for (int i = 0; i < images.size(); i++) {
            targets[i][images.get(i)[0]] = 1;
            for (int k = 0; k < PIXELS; k++) {
                inputs[i][k] = images.get(i)[k + 1] / INK;
            }
        }
        try (TFloat32 input = TFloat32.tensorOf(StdArrays.ndCopyOf(inputs));
                TFloat32 target = TFloat32.tensorOf(StdArrays.ndCopyOf(targets))) {
            Session.Runner runner = session.runner().feed(pixels, input).feed(labels, target);
            updates.forEach(runner::addTarget);
            runner.run();
        }
    }

    private float[][] value(String name) {
        Parameter parameter = parameters.stream()
                .filter(candidate -> candidate.name().equals(name))
                .findFirst()
                .orElseThrow();
        try (var result = session.runner().fetch(parameter.value()).run()) {
            return StdArrays.array2dCopyOf((TFloat32) result.get(0));
        }
    }

    /** Uniform random numbers, fewer and larger ones for fewer inputs. */
    private static float[][] random(Random random, int rows, int columns) {
        float limit = (float) Math.sqrt(6.0 / (rows + columns));
        float[][] values = new float[rows][columns];
        for (float[] row : values) {
            for (int i = 0; i < columns; i++) {
                row[i] = (2 * random.nextFloat() - 1) * limit;
            }
        }
        return values;
    }
}
