package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.tensorflow.capi.TfErrorCode;
import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.capi.TfLibrary;
import dev.nereid.backend.tensorflow.capi.TfSession;
import dev.nereid.backend.tensorflow.capi.TfTensorInfo;
import dev.nereid.backend.tensorflow.graph.Executor;
import dev.nereid.backend.tensorflow.graph.GraphDefReader;
import dev.nereid.backend.tensorflow.graph.GraphException;
import dev.nereid.backend.tensorflow.graph.GraphModel;
import dev.nereid.backend.tensorflow.graph.GraphOperators;
import dev.nereid.backend.tensorflow.graph.GraphTensor;
import dev.nereid.backend.tensorflow.graph.SavedModelReader;
import dev.nereid.backend.tensorflow.graph.SessionConfig;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** Reads the files of one model and opens its sessions. Confined to one load. */
final class ModelLoader {
    /** How the executor on one thread refuses a graph, in TensorFlow's words. */
    private static final String REFUSAL = "Single-threaded executor";

    private final ModelContext context;
    private final TensorFlowModelOptions options;
    private final Path file;
    private final boolean isGraphDef;

    ModelLoader(ModelContext context, TensorFlowModelOptions options) {
        this.context = context;
        this.options = options;
        file = TensorFlowModelPath.of(context);
        isGraphDef = TensorFlowModelPath.isGraphDef(context);
    }

    /** Returns whether the types of some tensors are known only when a session is open. */
    boolean needsSession() {
        return isGraphDef;
    }

    /** Reads what the files say about the model. */
    GraphModel read() {
        try {
            return isGraphDef
                    ? GraphDefReader.read(file, configuredOutputs())
                    : SavedModelReader.read(file, options.tags(), options.signature());
        } catch (GraphException e) {
            throw TensorFlowErrors.cannotLoad(context, e);
        }
    }

    /** Returns the size of the files with the values of variables. */
    long variableBytes() {
        return isGraphDef ? 0 : SavedModelReader.variableBytes(file);
    }

    private List<String> configuredOutputs() {
        ModelSettings settings = context.settings();
        Stream<String> states = settings.sequenceBatching().map(SequenceBatching::states).stream()
                .flatMap(List::stream)
                .map(StateSpec::outputName);
        return settings.outputs().isEmpty()
                ? List.of()
                : Stream.concat(settings.outputs().stream().map(TensorSpec::name), states)
                        .distinct()
                        .toList();
    }

    /** A session, and the options that it was opened with at last. */
    record Opened(TfSession session, SessionConfig config) {}

    /** Opens a session, with an executor for any graph where the simple one refuses this one. */
    Opened open(TfLibrary library, GraphOperators operators, SessionConfig config) {
        try {
            for (String custom : context.settings().values("model_operations.op_library_filename")) {
                OperatorLibraries.load(library, context, custom);
            }
            return openOrFallBack(library, operators, config);
        } catch (TfException e) {
            throw TensorFlowErrors.cannotLoad(context, e);
        } catch (IllegalArgumentException e) { // an operation that the graph does not have
            throw ModelErrors.cannotLoad(context.settings().name(), String.valueOf(e.getMessage()));
        } catch (IOException e) {
            throw ModelErrors.cannotLoad(context.settings().name(), "the graph cannot be read: " + e.getMessage());
        }
    }

    private Opened openOrFallBack(TfLibrary library, GraphOperators operators, SessionConfig config)
            throws TfException, IOException {
        if (config.executor() != Executor.SINGLE_THREADED) {
            return new Opened(initialized(library, config), config);
        }
        try {
            TfSession session = initialized(library, config);
            if (!session.hasReferences(operators::contains)) {
                return new Opened(session, config);
            }
            session.close(); // each run would be refused
        } catch (TfException e) {
            if (!isRefusal(e)) {
                throw e;
            }
        }
        SessionConfig anyGraph = config.with(Executor.CALLING_THREAD);
        return new Opened(initialized(library, anyGraph), anyGraph);
    }

    private static boolean isRefusal(TfException e) {
        return (e.code() == TfErrorCode.UNIMPLEMENTED || e.code() == TfErrorCode.FAILED_PRECONDITION)
                && String.valueOf(e.getMessage()).contains(REFUSAL);
    }

    private TfSession initialized(TfLibrary library, SessionConfig config) throws TfException, IOException {
        TfSession session = loaded(library, config.serialized());
        try {
            if (options.initOpsFile().isPresent()) {
                session.runOperations(InitOpsFile.read(context));
            }
            return session;
        } catch (TfException | RuntimeException e) {
            session.close();
            throw e;
        }
    }

    private TfSession loaded(TfLibrary library, byte[] config) throws TfException, IOException {
        return isGraphDef
                ? GraphDefReader.load(file, content -> TfSession.openGraph(library, content, config))
                : TfSession.openSavedModel(library, file, List.copyOf(options.tags()), config);
    }

    /**
     * Completes the types and shapes of a graph without a signature from the session. Its inputs are the configured
     * inputs, which may name any tensor, or else its placeholders.
     */
    GraphModel resolve(GraphModel model, TfSession session) {
        if (!isGraphDef) {
            return model;
        }
        Set<String> configured = new LinkedHashSet<>(TensorFlowValidation.names(context.settings()));
        List<GraphTensor> inputs = new ArrayList<>();
        for (GraphTensor placeholder : model.inputs()) {
            boolean isNamed = configured.remove(placeholder.name()) || configured.isEmpty();
            String name =
                    isNamed || !configured.remove(placeholder.tensor()) ? placeholder.name() : placeholder.tensor();
            inputs.add(resolve(name, placeholder.tensor(), session, "input"));
        }
        for (String name : configured) {
            inputs.add(resolve(name, name, session, "input"));
        }
        List<GraphTensor> outputs = new ArrayList<>();
        for (GraphTensor output : model.outputs()) {
            outputs.add(resolve(output.name(), output.tensor(), session, "output"));
        }
        return new GraphModel(model.signature(), inputs, outputs, model.operators());
    }

    private static GraphTensor resolve(String name, String tensor, TfSession session, String role) {
        try {
            TfTensorInfo info = session.tensor(tensor);
            return new GraphTensor(name, tensor, info.type(), info.shape());
        } catch (IllegalArgumentException e) {
            throw ModelErrors.invalid("unexpected inference " + role + " '" + name + "': " + e.getMessage());
        }
    }
}
