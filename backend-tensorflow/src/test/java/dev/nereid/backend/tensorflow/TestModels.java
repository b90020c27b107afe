package dev.nereid.backend.tensorflow;

import java.nio.file.Path;
import java.util.List;
import org.tensorflow.Graph;
import org.tensorflow.Operand;
import org.tensorflow.Operation;
import org.tensorflow.Output;
import org.tensorflow.Session;
import org.tensorflow.ndarray.NdArrays;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.op.Op;
import org.tensorflow.op.Ops;
import org.tensorflow.op.core.Placeholder;
import org.tensorflow.proto.DataType;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt64;
import org.tensorflow.types.TString;
import org.tensorflow.types.family.TType;

/** SavedModels of the tests, made with TensorFlow Java. */
final class TestModels {
    static final String SAVED_MODEL = "model.savedmodel";

    private TestModels() {}

    private static <T extends TType> Placeholder<T> input(Ops tf, String name, Class<T> type, long... dims) {
        return tf.withName(name)
                .placeholder(type, Placeholder.shape(dims.length == 0 ? Shape.scalar() : Shape.of(dims)));
    }

    /**
     * Writes a model with two signatures: {@code serving_default} adds a resource variable of 1, 2, 3, 4 to {@code x},
     * and {@code product} multiplies {@code x} by {@code factor}.
     */
    static void variable(Path directory) {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> x = input(tf, "x", TFloat32.class, -1, 4);
            Placeholder<TFloat32> factor = input(tf, "factor", TFloat32.class, -1, 1);
            Operand<? extends TType> handle = tf.varHandleOp(TFloat32.class, Shape.of(4));
            session.runner()
                    .addTarget(tf.assignVariableOp(handle, tf.constant(new float[] {1, 2, 3, 4})))
                    .run();
            Operand<TFloat32> sum = tf.withName("sum").math.add(x, tf.readVariableOp(handle, TFloat32.class));
            Operand<TFloat32> total = tf.math.mul(sum, tf.constant(10f));
            Operand<TFloat32> product = tf.math.mul(x, factor);
            new SavedModelFiles(graph)
                    .input("x", x)
                    .output("sum", sum)
                    .output("tenfold", total)
                    .input("product", "x", x)
                    .input("product", "factor", factor)
                    .output("product", "y", product)
                    .variable("weights", handle, TFloat32.class)
                    .write(session, directory.resolve(SAVED_MODEL));
        }
    }

    /** Writes a model that looks texts up in a table that the load fills: ein, zwei, drei. */
    static void table(Path directory) {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TString> words = input(tf, "words", TString.class, -1);
            var table = tf.hashTable(TString.class, TInt64.class);
            Op fill = tf.lookupTableImport(
                    table, tf.constant(NdArrays.vectorOfObjects("ein", "zwei", "drei")), tf.constant(new long[] {1, 2, 3
                    }));
            Operand<TInt64> numbers = tf.lookupTableFind(table, words, tf.constant(-1L));
            new SavedModelFiles(graph)
                    .input("words", words)
                    .output("numbers", numbers)
                    .initializer(fill)
                    .write(session, directory.resolve(SAVED_MODEL));
        }
    }

    /** Writes a model that keeps its input {@code next} in a variable, and returns what it kept before. */
    static void keeping(Path directory) {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> next = input(tf, "next", TFloat32.class, 64);
            Operand<? extends TType> handle = tf.varHandleOp(TFloat32.class, Shape.of(64));
            session.runner()
                    .addTarget(tf.assignVariableOp(handle, tf.fill(tf.constant(new int[] {64}), tf.constant(0f))))
                    .run();
            Operand<TFloat32> before = tf.math.add(tf.readVariableOp(handle, TFloat32.class), tf.constant(0f));
            Op kept = tf.withControlDependencies(List.of(before)).assignVariableOp(handle, next);
            Operand<TFloat32> result = tf.withControlDependencies(List.of(kept)).identity(before);
            new SavedModelFiles(graph)
                    .input("next", next)
                    .output("before", result)
                    .variable("kept", handle, TFloat32.class)
                    .write(session, directory.resolve(SAVED_MODEL));
        }
    }

    /**
     * Writes a model that puts {@code word} with {@code number} into a table, and returns the numbers that it had for
     * {@code asked} before, or -1.
     */
    static void learning(Path directory) {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TString> word = input(tf, "word", TString.class, -1);
            Placeholder<TInt64> number = input(tf, "number", TInt64.class, -1);
            Placeholder<TString> asked = input(tf, "asked", TString.class, -1);
            var table = tf.mutableHashTable(TString.class, TInt64.class);
            Operand<TInt64> known = tf.lookupTableFind(table, asked, tf.constant(-1L));
            Op learned = tf.withControlDependencies(List.of(known)).lookupTableInsert(table, word, number);
            Operand<TInt64> result =
                    tf.withControlDependencies(List.of(learned)).identity(known);
            new SavedModelFiles(graph)
                    .input("word", word)
                    .input("number", number)
                    .input("asked", asked)
                    .output("known", result)
                    .write(session, directory.resolve(SAVED_MODEL));
        }
    }

    /** Writes a model with a variable of TensorFlow 1, which is passed on as a reference. */
    static void reference(Path directory) {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> x = input(tf, "x", TFloat32.class, -1, 2);
            var variable = tf.withName("v").variable(Shape.of(2), TFloat32.class);
            Op assigned = tf.withName("set").assign(variable, tf.constant(new float[] {5, 6}));
            Operand<TFloat32> sum = tf.math.add(x, variable);
            new SavedModelFiles(graph)
                    .input("x", x)
                    .output("sum", sum)
                    .initializer(assigned)
                    .write(session, directory.resolve(SAVED_MODEL));
        }
    }

    /** Writes a model as {@link #table}, with the operations of TensorFlow 1. */
    static void oldTable(Path directory) {
        TensorFlowJava.ensureLoaded();
        DataType text = DataType.DT_STRING;
        DataType number = DataType.DT_INT64;
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TString> words = input(tf, "words", TString.class, -1);
            Output<?> table = graph.opBuilder("HashTable", "table", tf.scope())
                    .setAttr("key_dtype", text)
                    .setAttr("value_dtype", number)
                    .build()
                    .output(0);
            Operation fill = graph.opBuilder("InitializeTable", "fill", tf.scope())
                    .addInput(table)
                    .addInput(tf.constant(NdArrays.vectorOfObjects("ein", "zwei", "drei"))
                            .asOutput())
                    .addInput(tf.constant(new long[] {1, 2, 3}).asOutput())
                    .build();
            Operation find = graph.opBuilder("LookupTableFind", "find", tf.scope())
                    .addInput(table)
                    .addInput(words.asOutput())
                    .addInput(tf.constant(-1L).asOutput())
                    .build();
            Operand<TInt64> numbers = find.output(0);
            new SavedModelFiles(graph)
                    .input("words", words)
                    .output("numbers", numbers)
                    .initializer(() -> fill)
                    .write(session, directory.resolve(SAVED_MODEL));
        }
    }

    /** Writes a model whose input is {@code scale} of no dimensions: {@code x * scale}. */
    static void scalar(Path directory) {
        TensorFlowJava.ensureLoaded();
        try (Graph graph = new Graph();
                Session session = new Session(graph)) {
            Ops tf = Ops.create(graph);
            Placeholder<TFloat32> x = input(tf, "x", TFloat32.class, 3);
            Placeholder<TFloat32> scale = input(tf, "scale", TFloat32.class);
            Operand<TFloat32> scaled = tf.math.mul(x, scale);
            Operand<TFloat32> doubled = tf.math.mul(scale, tf.constant(2f));
            new SavedModelFiles(graph)
                    .input("x", x)
                    .input("scale", scale)
                    .output("scaled", scaled)
                    .output("doubled", doubled)
                    .write(session, directory.resolve(SAVED_MODEL));
        }
    }
}
