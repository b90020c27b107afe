package dev.nereid.backend.tensorflow;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tensorflow.Graph;
import org.tensorflow.GraphOperation;
import org.tensorflow.Operand;
import org.tensorflow.Session;
import org.tensorflow.ndarray.NdArrays;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.op.Op;
import org.tensorflow.op.Ops;
import org.tensorflow.op.core.Placeholder;
import org.tensorflow.proto.CollectionDef;
import org.tensorflow.proto.MetaGraphDef;
import org.tensorflow.proto.SavedModel;
import org.tensorflow.proto.SaverDef;
import org.tensorflow.proto.SignatureDef;
import org.tensorflow.proto.TensorInfo;
import org.tensorflow.proto.TensorShapeProto;
import org.tensorflow.types.TString;
import org.tensorflow.types.family.TType;

/**
 * Writes SavedModels of graphs that TensorFlow Java builds. Its own exporter omits resource variables, so the operations
 * that save and restore them are added here.
 */
final class SavedModelFiles {
    private final Graph graph;
    private final Ops tf;
    private final Map<String, SignatureDef.Builder> signatures = new LinkedHashMap<>();
    private final Map<String, Variable> variables = new LinkedHashMap<>();
    private final List<Op> initializers = new ArrayList<>();
    private String tag = "serve";
    private SaverDef saver = SaverDef.getDefaultInstance();

    /** A resource variable: its handle, and its type. */
    private record Variable(Operand<? extends TType> handle, Class<? extends TType> type) {}

    SavedModelFiles(Graph graph) {
        this.graph = graph;
        tf = Ops.create(graph);
    }

    SavedModelFiles tag(String changed) {
        tag = changed;
        return this;
    }

    SavedModelFiles input(String signature, String name, Operand<?> tensor) {
        signature(signature).putInputs(name, info(tensor));
        return this;
    }

    SavedModelFiles output(String signature, String name, Operand<?> tensor) {
        signature(signature).putOutputs(name, info(tensor));
        return this;
    }

    SavedModelFiles input(String name, Operand<?> tensor) {
        return input("serving_default", name, tensor);
    }

    SavedModelFiles output(String name, Operand<?> tensor) {
        return output("serving_default", name, tensor);
    }

    /** Adds an operation that the load runs. */
    SavedModelFiles initializer(Op operation) {
        initializers.add(operation);
        return this;
    }

    /** Adds a resource variable with a value to be saved. */
    SavedModelFiles variable(String name, Operand<? extends TType> handle, Class<? extends TType> type) {
        variables.put(name, new Variable(handle, type));
        return this;
    }

    private SignatureDef.Builder signature(String name) {
        return signatures.computeIfAbsent(
                name, _ -> SignatureDef.newBuilder().setMethodName("tensorflow/serving/predict"));
    }

    private static TensorInfo info(Operand<?> tensor) {
        TensorShapeProto.Builder shape = TensorShapeProto.newBuilder();
        Shape dims = tensor.shape();
        if (dims.isUnknown()) {
            shape.setUnknownRank(true);
        } else {
            for (int i = 0; i < dims.numDimensions(); i++) {
                shape.addDimBuilder().setSize(dims.get(i));
            }
        }
        return TensorInfo.newBuilder()
                .setName(tensor.asOutput().op().name() + ":" + tensor.asOutput().index())
                .setDtypeValue(tensor.asOutput().dataType().getNumber())
                .setTensorShape(shape)
                .build();
    }

    /** Writes the model; the session has the values of the variables. */
    Path write(Session session, Path directory) {
        try {
            Files.createDirectories(directory);
            if (!variables.isEmpty()) {
                saveVariables(session, directory);
            }
            MetaGraphDef.Builder meta = MetaGraphDef.newBuilder();
            meta.getMetaInfoDefBuilder().addTags(tag);
            signatures.forEach((name, signature) -> meta.putSignatureDef(name, signature.build()));
            if (!initializers.isEmpty()) {
                List<Op> all = List.copyOf(initializers);
                String group = tf.withName("init_all")
                        .withControlDependencies(all)
                        .noOp()
                        .op()
                        .name();
                CollectionDef.Builder collection = CollectionDef.newBuilder();
                collection.getNodeListBuilder().addValue(group);
                meta.putCollectionDef("saved_model_main_op", collection.build());
            }
            meta.setSaverDef(saver).setGraphDef(graph.toGraphDef());
            SavedModel model = SavedModel.newBuilder()
                    .setSavedModelSchemaVersion(1)
                    .addMetaGraphs(meta)
                    .build();
            Files.write(directory.resolve("saved_model.pb"), model.toByteArray());
            return directory;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void saveVariables(Session session, Path directory) throws IOException {
        Placeholder<TString> filename =
                tf.withName("save_filename").placeholder(TString.class, Placeholder.shape(Shape.scalar()));
        List<String> names = List.copyOf(variables.keySet());
        Operand<TString> nameTensor = tf.constant(NdArrays.vectorOfObjects(names.toArray(String[]::new)));
        Operand<TString> slices =
                tf.constant(NdArrays.vectorOfObjects(names.stream().map(_ -> "").toArray(String[]::new)));
        List<Operand<?>> values = new ArrayList<>();
        List<Class<? extends TType>> types = new ArrayList<>();
        for (Variable variable : variables.values()) {
            values.add(tf.readVariableOp(variable.handle(), variable.type()));
            types.add(variable.type());
        }
        Op save = tf.train.save(filename, nameTensor, slices, values);
        var restored = tf.withName("save_restore").train.restore(filename, nameTensor, slices, types);
        List<Op> assignments = new ArrayList<>();
        int index = 0;
        for (Variable variable : variables.values()) {
            assignments.add(assign(variable, restored.tensors().get(index++)));
        }
        String restore = tf.withName("save_restore_all")
                .withControlDependencies(assignments)
                .noOp()
                .op()
                .name();
        String saveTensor = tf.withName("save_control")
                .withControlDependencies(save)
                .identity(filename)
                .op()
                .name();
        saver = SaverDef.newBuilder()
                .setFilenameTensorName(filename.op().name() + ":0")
                .setSaveTensorName(saveTensor + ":0")
                .setRestoreOpName(restore)
                .setVersion(SaverDef.CheckpointFormatVersion.V2)
                .build();
        Path prefix = Files.createDirectories(directory.resolve("variables")).resolve("variables");
        try (TString path = TString.scalarOf(prefix.toString())) {
            session.runner().feed(filename, path).addTarget(save).run();
        }
    }

    @SuppressWarnings("unchecked")
    private Op assign(Variable variable, Operand<?> value) {
        return tf.assignVariableOp(variable.handle(), (Operand<TType>) value);
    }

    /** Returns a one-dimensional tensor of texts. */
    static TString strings(String... values) {
        return TString.tensorOf(NdArrays.vectorOfObjects(values));
    }

    /** Returns the name of a tensor in the graph. */
    static String name(GraphOperation operation) {
        return operation.name() + ":0";
    }
}
