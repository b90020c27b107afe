package dev.nereid.scheduler.oracle;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.memory.ZeroMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.NullRequest;
import dev.nereid.scheduler.request.RequestDrain;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.spi.Sequence;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Makes the controls and states that requests of sequences get beside their inputs. Safe for use by any thread. */
final class SequenceInputs {
    private final ModelScope model;
    private final ModelScope uncounted;
    private final EqualInputs equalInputs;
    private final SequenceControls controls;
    private final StateMemory states;

    /** The inputs of null requests; {@code null} if the strategy has none. */
    private final @Nullable ZeroMemory zeros;

    SequenceInputs(ModelScope model, SequencePlan plan) {
        this.model = model;
        this.uncounted = model.uncounted(new RequestDrain());
        this.equalInputs = new EqualInputs(model.settings());
        this.controls = new SequenceControls(plan.controls(), model.settings().batches());
        this.states =
                new StateMemory(plan.states(), model.memory(), model.meter().stateCopies());
        this.zeros = plan.isDirect() && plan.slots() > 1 ? new ZeroMemory(model.memory()) : null;
    }

    /** Returns the rule for inputs of clients that may share a batch. */
    EqualInputs equalInputs() {
        return equalInputs;
    }

    long stateBytes() {
        return states.bytes();
    }

    String modelName() {
        return model.settings().name();
    }

    /** Records that there is another instance. */
    void addInstance() {
        states.addInstance();
    }

    void removeInstance() {
        states.removeInstance();
    }

    /** Returns the number of control inputs; the states are behind them. */
    int controls() {
        return controls.size();
    }

    /**
     * Creates a sequence without requests.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory for its id
     */
    LiveSequence newSequence(Sequence.Id id) {
        SequenceStates own = states.size() == 0 ? null : new SequenceStates(states);
        return new LiveSequence(id, controls.id(id, model.memory()), own);
    }

    /**
     * Returns the control inputs of a request and the states of its sequence. A start resets the states.
     *
     * @param release runs actions that release the memory of states later: they may run code of the backend
     */
    List<NamedTensor> of(LiveSequence sequence, SequenceEntry entry, Consumer<Runnable> release) {
        List<NamedTensor> flags = controls.of(entry.starts(), entry.ends(), sequence.idTensor());
        SequenceStates own = sequence.states();
        if (own == null) {
            return flags;
        }
        if (entry.starts()) {
            own.reset(release);
        }
        List<NamedTensor> all = new ArrayList<>(flags);
        all.addAll(own.use());
        return all;
    }

    /**
     * Makes room for the null requests beside a request, if the strategy has any.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory
     */
    void reserveNullRequests(CheckedRequest request) {
        if (zeros != null) {
            NullRequest.reserve(zeros, model.settings(), request);
        }
    }

    /** Frees the memory of null requests while no sequence lives. A request that arrives meanwhile allocates it again. */
    void freeNullRequests() {
        if (zeros != null) {
            zeros.free();
        }
    }

    /** Frees the memory of null requests. No request is accepted any more. */
    void close() {
        if (zeros != null) {
            zeros.close();
        }
    }

    Executable nullRequest(Executable like) {
        List<NamedTensor> added = controls.ofNone();
        if (states.size() > 0) {
            added = new ArrayList<>(added);
            added.addAll(states.zeros(
                    like.added().subList(controls.size(), like.added().size())));
        }
        return new NullRequest(uncounted, like, added, requireNonNull(zeros));
    }
}
