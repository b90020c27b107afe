package dev.nereid.scheduler.sequence;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.Sequence;
import java.util.ArrayList;
import java.util.List;

/** The control inputs and states of the first request of a sequence, without a sequence. Static functions only. */
public final class FirstRequest {
    private static final Sequence.Id ID = new Sequence.Id.Numeric(1);

    private FirstRequest() {}

    /**
     * Returns the inputs that the server adds to a first request: the flag START is set, the id is 1, and states have
     * their initial values.
     *
     * @param plan the sequences of the model
     * @param batches whether the model batches
     * @return the inputs, in memory that is never changed, and is freed by the garbage collector
     */
    public static List<NamedTensor> inputs(SequencePlan plan, boolean batches) {
        List<NamedTensor> inputs = new ArrayList<>(new SequenceControls(plan.controls(), batches).ofFirst(ID));
        for (InitialState state : plan.states()) {
            inputs.add(new NamedTensor(state.spec().inputName(), state.value()));
        }
        return List.copyOf(inputs);
    }
}
