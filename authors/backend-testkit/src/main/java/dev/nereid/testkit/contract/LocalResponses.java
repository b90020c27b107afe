package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The responses of one execution. Confined to the thread of the instance.
 *
 * @param batch the batch of the requests, after its execution
 */
record LocalResponses(ModelSettings settings, LocalRequests requests, FakeBatch batch) {
    /** Checks the response to a request against the configuration, and copies it. */
    LocalResponse response(int place) {
        FakeRequest request = requests.all().get(place);
        List<Map<String, Tensor>> responses = outputs(place);
        if (!requests.isNull(place)) {
            responses.forEach(outputs -> LocalTensors.check(
                    settings,
                    LocalTensors.items(settings, requests.example(place).inputs()),
                    outputs));
            if (hasRequiredInputs(requests.example(place))) {
                checkComplete(request, responses);
            }
        }
        Optional<BackendException> failure =
                settings.decoupled() ? requests.senders().get(place).failure().or(request::failure) : request.failure();
        return new LocalResponse(responses, states(place), failure, request.isRescheduled());
    }

    /** Copies the new values of the states of a request. */
    private Map<String, Tensor> states(int place) {
        Map<String, Tensor> states = new LinkedHashMap<>();
        for (StateSpec state :
                settings.sequenceBatching().map(SequenceBatching::states).orElse(List.of())) {
            Optional<Tensor> written = requests.all().get(place).writtenState(state.outputName());
            written.ifPresent(tensor -> states.put(state.outputName(), LocalTensors.copy(tensor)));
            if (written.isEmpty()) {
                LocalTensors.part(batch.writtenState(state.outputName()), requests.all(), place)
                        .ifPresent(tensor -> states.put(state.outputName(), tensor));
            }
        }
        return states;
    }

    /** Copies the outputs of a request. */
    private List<Map<String, Tensor>> outputs(int place) {
        List<Map<String, Tensor>> responses = new ArrayList<>();
        if (usesSender(place)) {
            requests.senders().get(place).responses().forEach(outputs -> responses.add(LocalTensors.copies(outputs)));
        } else {
            Map<String, Tensor> outputs = new LinkedHashMap<>(
                    LocalTensors.copies(requests.all().get(place).outputs()));
            outputs.putAll(LocalTensors.parts(settings, batch, requests.all(), place));
            responses.add(outputs);
        }
        return responses;
    }

    /** Returns whether the responses to a request come from its sender. */
    private boolean usesSender(int place) {
        return settings.decoupled() || requests.all().get(place).isSenderRequested();
    }

    /** Returns whether the server would accept a request. */
    private boolean hasRequiredInputs(ContractExample example) {
        return settings.inputs().stream()
                .allMatch(input ->
                        input.is(TensorSpec.Trait.OPTIONAL) || example.inputs().containsKey(input.name()));
    }

    /** Fails if a response lacks requested outputs: the server would send it without them. */
    private void checkComplete(FakeRequest request, List<Map<String, Tensor>> responses) {
        boolean mayLack = settings.decoupled()
                || request.failure().isPresent()
                || request.isCancelled()
                || request.isRescheduled();
        for (String output : request.requestedOutputs()) {
            if (!mayLack && (responses.isEmpty() || !responses.getFirst().containsKey(output))) {
                throw new AssertionError(
                        "output '" + output + "' of response 0: missing (expected: all requested outputs)");
            }
        }
    }

    /** Fails if outputs have changed since they were returned. */
    void checkUnchanged(List<LocalResponse> before) {
        for (int i = 0; i < before.size(); i++) {
            List<Map<String, Tensor>> now = outputs(i);
            if (now.size() != before.get(i).responses().size()) {
                throw new AssertionError("responses: " + now.size() + " after the execution (expected: "
                        + before.get(i).responses().size() + ", as at its end)");
            }
            for (int response = 0; response < now.size(); response++) {
                Map<String, Tensor> earlier = before.get(i).responses().get(response);
                now.get(response).forEach((name, tensor) -> {
                    Tensor then = earlier.get(name);
                    if (then == null || then.data().mismatch(tensor.data()) >= 0) {
                        throw new AssertionError("output '" + name
                                + "': changed after the execution (expected: left alone until it is released)");
                    }
                });
            }
        }
    }
}
