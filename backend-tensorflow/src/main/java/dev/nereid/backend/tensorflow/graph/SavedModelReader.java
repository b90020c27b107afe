package dev.nereid.backend.tensorflow.graph;

import com.google.protobuf.TextFormat;
import dev.nereid.backend.tensorflow.capi.TfDataType;
import java.io.IOException;
import java.io.Reader;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.tensorflow.proto.MetaGraphDef;
import org.tensorflow.proto.SavedModel;
import org.tensorflow.proto.SignatureDef;
import org.tensorflow.proto.TensorInfo;
import org.tensorflow.proto.TensorShapeProto;

/** Reads the signature of a SavedModel. Stateless. */
public final class SavedModelReader {
    private static final String BINARY = "saved_model.pb";
    private static final String TEXT = "saved_model.pbtxt";
    private static final String VARIABLES = "variables";
    private static final String INDEX = "variables.index";
    private static final String DEFAULT_SIGNATURE = "serving_default";
    /** Signatures that no client calls. */
    private static final Set<String> OWN_SIGNATURES = Set.of("__saved_model_init_op", "__saved_model_train_op");

    private SavedModelReader() {}

    /**
     * Reads a SavedModel.
     *
     * @param signature the name of the signature; empty for the default one, or the only one of another name
     * @throws GraphException if the files are no such model
     */
    public static GraphModel read(Path directory, Set<String> tags, Optional<String> signature) throws GraphException {
        try (Arena arena = Arena.ofConfined()) {
            MetaGraphDef graph = graph(savedModel(directory, arena), tags);
            MappedFiles.refuse(graph.getGraphDef());
            String name = signature(graph, signature);
            SignatureDef chosen = graph.getSignatureDefOrThrow(name);
            List<GraphTensor> inputs = tensors(chosen.getInputsMap(), name, "input");
            List<GraphTensor> outputs = tensors(chosen.getOutputsMap(), name, "output");
            GraphOperators operators = new ReachableOperators(graph.getGraphDef())
                    .of(outputs.stream().map(GraphTensor::tensor).toList());
            checkVariables(directory, graph, operators);
            return new GraphModel(name, inputs, outputs, operators);
        }
    }

    private static SavedModel savedModel(Path directory, Arena arena) throws GraphException {
        Path binary = directory.resolve(BINARY);
        Path text = directory.resolve(TEXT);
        try {
            if (Files.isRegularFile(binary)) {
                return Messages.parse(Messages.read(binary, arena), SavedModel.getDefaultInstance());
            }
            if (Files.isRegularFile(text)) {
                SavedModel.Builder model = SavedModel.newBuilder();
                try (Reader reader = Files.newBufferedReader(text)) {
                    TextFormat.merge(reader, model);
                }
                return model.build();
            }
        } catch (IOException e) {
            throw new GraphException(
                    (Files.exists(binary) ? BINARY : TEXT) + ": damaged or cut short (expected: a SavedModel): "
                            + e.getMessage(),
                    e);
        }
        throw new GraphException(BINARY + ": missing (expected: " + BINARY + " or " + TEXT + ")");
    }

    private static MetaGraphDef graph(SavedModel model, Set<String> tags) throws GraphException {
        for (MetaGraphDef graph : model.getMetaGraphsList()) {
            if (Set.copyOf(graph.getMetaInfoDef().getTagsList()).equals(tags)) {
                return graph;
            }
        }
        if (model.getMetaGraphsCount() == 0) {
            throw new GraphException(BINARY + ": without a graph (expected: a SavedModel)");
        }
        String available = model.getMetaGraphsList().stream()
                .map(graph ->
                        String.join(",", new TreeSet<>(graph.getMetaInfoDef().getTagsList())))
                .map(found -> "'" + found + "'")
                .collect(Collectors.joining(" or "));
        throw new GraphException("TF_GRAPH_TAG: '" + String.join(",", new TreeSet<>(tags)) + "' (expected: " + available
                + ", the tags in the SavedModel)");
    }

    /** Chooses the signature as the reference server does. */
    private static String signature(MetaGraphDef graph, Optional<String> signature) throws GraphException {
        Set<String> names = new TreeSet<>(graph.getSignatureDefMap().keySet());
        names.removeAll(OWN_SIGNATURES);
        String wanted = signature.orElse(DEFAULT_SIGNATURE);
        if (graph.containsSignatureDef(wanted)) {
            return wanted;
        }
        if (names.isEmpty()) {
            throw new GraphException("signature: none (expected: a SavedModel with a signature)");
        }
        if (signature.isPresent()) {
            throw new GraphException(
                    "TF_SIGNATURE_DEF: '" + wanted + "' (expected: " + String.join(" or ", names) + ")");
        }
        return names.iterator().next();
    }

    private static List<GraphTensor> tensors(Map<String, TensorInfo> infos, String signature, String role)
            throws GraphException {
        List<GraphTensor> tensors = new ArrayList<>();
        for (Map.Entry<String, TensorInfo> entry : infos.entrySet()) {
            TensorInfo info = entry.getValue();
            tensors.add(new GraphTensor(
                    entry.getKey(), info.getName(), TfDataType.of(info.getDtypeValue()), shape(info.getTensorShape())));
        }
        if (tensors.isEmpty() && role.equals("output")) {
            throw new GraphException("signature '" + signature + "': no outputs (expected: at least one)");
        }
        tensors.sort(Comparator.comparing(GraphTensor::name));
        return tensors;
    }

    private static Optional<long[]> shape(TensorShapeProto shape) {
        return shape.getUnknownRank()
                ? Optional.empty()
                : Optional.of(shape.getDimList().stream()
                        .mapToLong(TensorShapeProto.Dim::getSize)
                        .map(size -> Math.max(-1, size))
                        .toArray());
    }

    /** TensorFlow loads a model without its variables, and fails at each request. */
    private static void checkVariables(Path directory, MetaGraphDef graph, GraphOperators operators)
            throws GraphException {
        boolean isRestored = !graph.getSaverDef().getRestoreOpName().isEmpty();
        if (operators.readsVariables()
                && isRestored
                && !Files.isRegularFile(directory.resolve(VARIABLES).resolve(INDEX))) {
            throw new GraphException(
                    VARIABLES + "/" + INDEX + ": missing (expected: the values of the model's variables)");
        }
    }

    /** Returns the size of the files with the values of the variables. */
    public static long variableBytes(Path directory) {
        try (Stream<Path> files = Files.list(directory.resolve(VARIABLES))) {
            long total = 0;
            for (Path file : files.toList()) {
                total += Files.size(file);
            }
            return total;
        } catch (IOException e) {
            return 0; // there are none
        }
    }
}
