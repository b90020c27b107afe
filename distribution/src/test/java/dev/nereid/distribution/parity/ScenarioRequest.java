package dev.nereid.distribution.parity;

import dev.nereid.distribution.testing.ClientRequest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The inference request of a scenario. Immutable.
 *
 * @param model the model
 * @param version the version; empty for the latest
 * @param id the id; empty for none
 * @param inputs the inputs
 * @param outputs the requested outputs; empty for all
 * @param parameters the parameters: Boolean, Long, Double or String
 */
record ScenarioRequest(
        String model,
        String version,
        String id,
        List<ClientRequest.Input> inputs,
        List<Scenario.Output> outputs,
        Map<String, Object> parameters) {
    /** Creates a request with only a model. */
    static ScenarioRequest of(String model) {
        return new ScenarioRequest(model, "", "", List.of(), List.of(), Map.of());
    }

    ScenarioRequest withVersion(String changed) {
        return new ScenarioRequest(model, changed, id, inputs, outputs, parameters);
    }

    ScenarioRequest withId(String changed) {
        return new ScenarioRequest(model, version, changed, inputs, outputs, parameters);
    }

    ScenarioRequest withInput(String input, String datatype, byte[] data, long... shape) {
        ClientRequest more = ClientRequest.of(model).input(input, datatype, data, shape);
        return new ScenarioRequest(
                model, version, id, joined(inputs, more.inputs().getFirst()), outputs, parameters);
    }

    ScenarioRequest withOutput(Scenario.Output output) {
        return new ScenarioRequest(model, version, id, inputs, joined(outputs, output), parameters);
    }

    ScenarioRequest withParameter(String key, Object value) {
        Map<String, Object> more = new LinkedHashMap<>(parameters);
        more.put(key, value);
        return new ScenarioRequest(model, version, id, inputs, outputs, more);
    }

    private static <T> List<T> joined(List<T> list, T one) {
        List<T> more = new ArrayList<>(list);
        more.add(one);
        return List.copyOf(more);
    }
}
