package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.capi.TfExecution;
import dev.nereid.backend.tensorflow.capi.TfLibrary;
import dev.nereid.backend.tensorflow.capi.TfSession;
import dev.nereid.backend.tensorflow.graph.Executor;
import dev.nereid.backend.tensorflow.graph.GraphModel;
import dev.nereid.backend.tensorflow.graph.GraphTensor;
import dev.nereid.backend.tensorflow.graph.SessionConfig;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;

/** A loaded model: sessions that instances share. Any control thread may use it. */
final class TensorFlowModel implements Model {
    /** The largest weights with which a run takes less time than waking another thread. */
    private static final long LITTLE_WORK_BYTES = 256 * 1024;

    private final List<TfSession> sessions;
    private final TensorFlowSignature signature;
    private final int instancesPerSession;
    private final boolean copiesInputs;
    private final boolean isShort;
    private final FetchSets fetchSets = new FetchSets();
    private final AtomicInteger instances = new AtomicInteger();

    private TensorFlowModel(
            List<TfSession> sessions,
            TensorFlowSignature signature,
            int instancesPerSession,
            boolean copiesInputs,
            boolean isShort) {
        this.sessions = List.copyOf(sessions);
        this.signature = signature;
        this.instancesPerSession = instancesPerSession;
        this.copiesInputs = copiesInputs;
        this.isShort = isShort;
    }

    /** Loads a model, and refuses it if it does not agree with its configuration. */
    static TensorFlowModel load(TfLibrary library, ModelContext context, TensorFlowBackendOptions backend) {
        TensorFlowModelOptions options = TensorFlowModelOptions.of(context, backend);
        ModelLoader loader = new ModelLoader(context, options);
        GraphModel files = loader.read();
        if (!loader.needsSession()) { // before anything native is loaded
            TensorFlowValidation.check(context.settings(), files);
        }
        SessionConfig config = options.session(files.operators(), backend);
        List<TfSession> sessions = new ArrayList<>();
        try {
            int count = sessions(context.instances().size(), options.instancesPerSession());
            for (int i = 0; i < count; i++) {
                ModelLoader.Opened opened = loader.open(library, files.operators(), config);
                sessions.add(opened.session());
                config = opened.config(); // the next ones need not be refused first
            }
            requireDevices(context, options, sessions.getFirst());
            GraphModel model = loader.resolve(files, sessions.getFirst());
            TensorFlowValidation.check(context.settings(), model);
            boolean isShort = config.executor() == Executor.SINGLE_THREADED
                    && !model.operators().keepsInputs()
                    && model.operators().isLittleWork(loader.variableBytes(), LITTLE_WORK_BYTES);
            TensorFlowSignature signature = new TensorFlowSignature(context.settings(), model);
            requireTensors(context, model, signature, sessions.getFirst());
            if (isShort) {
                sessions.forEach(session -> Priming.run(session, model, signature, context.logger()));
            }
            context.logger().log(System.Logger.Level.INFO, report(context, config, model, count));
            return new TensorFlowModel(
                    sessions,
                    signature,
                    options.instancesPerSession(),
                    model.operators().keepsInputs(),
                    isShort);
        } catch (RuntimeException e) {
            sessions.forEach(TfSession::close);
            throw e;
        }
    }

    private static int sessions(int instances, int instancesPerSession) {
        return Math.ceilDiv(Math.max(1, instances), instancesPerSession);
    }

    private static void requireDevices(ModelContext context, TensorFlowModelOptions options, TfSession session) {
        try {
            if (options.gpus() && session.devices("GPU") == 0) {
                throw ModelErrors.cannotLoad(
                        context.settings().name(),
                        "instance on a GPU (expected: KIND_CPU, since this TensorFlow has found no GPU)");
            }
        } catch (TfException e) {
            throw TensorFlowErrors.cannotLoad(context, e);
        }
    }

    /** A signature may name a tensor that the graph does not have, or one that no tensor can be. */
    private static void requireTensors(
            ModelContext context, GraphModel model, TensorFlowSignature signature, TfSession session) {
        for (GraphTensor input : model.inputs()) {
            int rank = input.shape().map(shape -> shape.length).orElse(0);
            if (rank > TfExecution.MAX_RANK) {
                throw ModelErrors.cannotLoad(
                        context.settings().name(),
                        "input '" + input.name() + "': " + rank + " dimensions (expected: <= " + TfExecution.MAX_RANK
                                + ")");
            }
        }
        try {
            session.newExecution(signature.fed(), signature.fetched()).close();
        } catch (IllegalArgumentException e) {
            throw ModelErrors.cannotLoad(context.settings().name(), String.valueOf(e.getMessage()));
        }
    }

    private static String report(ModelContext context, SessionConfig config, GraphModel model, int sessions) {
        return "loaded version " + context.settings().version() + ": "
                + (model.signature().isEmpty() ? "graph" : "signature '" + model.signature() + "'") + ", "
                + config.executor().text() + ", instances "
                + context.instances().size() + ", sessions " + sessions
                + ", inputs " + model.inputs().size() + ", outputs "
                + model.outputs().size();
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) {
        int index = instances.getAndIncrement() / instancesPerSession;
        TfSession session = sessions.get(Math.floorMod(index, sessions.size()));
        TfExecution execution = session.newExecution(signature.fed(), signature.fetched());
        return new TensorFlowInstance(signature, execution, fetchSets, copiesInputs);
    }

    /** Says whether there are as many sessions as would be opened for other instances. */
    @Override
    public boolean suits(List<Device> instances) {
        return sessions(instances.size(), instancesPerSession) == sessions.size();
    }

    /** A run that is shorter than waking the instance's thread may take place on the submitting thread. */
    @Override
    public Optional<BackendTraits.Execution> execution() {
        return isShort ? Optional.of(BackendTraits.Execution.SHORT) : Optional.empty();
    }

    @Override
    public void close() {
        sessions.forEach(TfSession::close);
    }
}
