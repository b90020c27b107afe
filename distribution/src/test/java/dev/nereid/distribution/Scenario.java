package dev.nereid.distribution;

import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * One inference that is asked over every protocol, and what is to come of it. Immutable.
 *
 * @param name what it is about
 * @param model the model
 * @param version the version; empty for the latest
 * @param id the id; empty for none
 * @param inputs the inputs
 * @param outputs the outputs wanted; empty for all
 * @param parameters the parameters: Boolean, Long, Double or String
 * @param expectation what is to come of it
 * @param refusals what single protocols say instead, since their words or rules are their own
 * @param impossible which protocols cannot say it, and why
 */
record Scenario(
        String name,
        String model,
        String version,
        String id,
        List<Ask.Input> inputs,
        List<Wanted> outputs,
        Map<String, Object> parameters,
        Expectation expectation,
        Map<Protocol, Outcome.Refused> refusals,
        Map<Protocol, String> impossible) {
    /**
     * A requested output.
     *
     * @param name its name
     * @param classes how many classes of it; 0 for its content
     */
    record Wanted(String name, long classes) {}

    /** What is to come of a scenario, the same over all protocols. */
    sealed interface Expectation {
        /** One response, whose outputs are the inputs. */
        record Echo() implements Expectation {}

        /**
         * Responses with these contents of their first output.
         *
         * @param contents the bytes
         */
        record Contents(List<byte[]> contents) implements Expectation {}

        /**
         * An error.
         *
         * @param code its code
         * @param text how its text begins
         */
        record Failure(ErrorCode code, String text) implements Expectation {}
    }

    /** Begins a scenario in which a model is to answer with its inputs. */
    static Scenario of(String name, String model) {
        return new Scenario(
                name, model, "", "", List.of(), List.of(), Map.of(), new Expectation.Echo(), Map.of(), Map.of());
    }

    Scenario in(String input, String datatype, byte[] data, long... shape) {
        Ask more = Ask.of(model).input(input, datatype, data, shape);
        return with(version, id, joined(inputs, more.inputs().getFirst()), outputs, parameters, expectation);
    }

    Scenario out(String output) {
        return out(output, 0);
    }

    Scenario out(String output, long classes) {
        return with(version, id, inputs, joined(outputs, new Wanted(output, classes)), parameters, expectation);
    }

    Scenario withVersion(String changed) {
        return with(changed, id, inputs, outputs, parameters, expectation);
    }

    Scenario withId(String changed) {
        return with(version, changed, inputs, outputs, parameters, expectation);
    }

    Scenario withParameter(String key, Object value) {
        Map<String, Object> more = new LinkedHashMap<>(parameters);
        more.put(key, value);
        return with(version, id, inputs, outputs, more, expectation);
    }

    Scenario answers(byte[]... contents) {
        return with(version, id, inputs, outputs, parameters, new Expectation.Contents(List.of(contents)));
    }

    Scenario fails(ErrorCode code, String text) {
        return with(version, id, inputs, outputs, parameters, new Expectation.Failure(code, text));
    }

    /** Says what one protocol answers instead. */
    Scenario but(Protocol protocol, ErrorCode code, String text) {
        Map<Protocol, Outcome.Refused> more = new EnumMap<>(Protocol.class);
        more.putAll(refusals);
        more.put(protocol, new Outcome.Refused(protocol.codeOf(code), text));
        return new Scenario(name, model, version, id, inputs, outputs, parameters, expectation, more, impossible);
    }

    /** Leaves protocols out that cannot say it. */
    Scenario not(String reason, Protocol... protocols) {
        Map<Protocol, String> more = new EnumMap<>(Protocol.class);
        more.putAll(impossible);
        for (Protocol protocol : protocols) {
            more.put(protocol, reason);
        }
        return new Scenario(name, model, version, id, inputs, outputs, parameters, expectation, refusals, more);
    }

    /** Returns what a protocol answers instead of the rest, if it does. */
    Optional<Outcome.Refused> refusal(Protocol protocol) {
        return Optional.ofNullable(refusals.get(protocol));
    }

    @Override
    public String toString() {
        return name;
    }

    private Scenario with(
            String newVersion,
            String newId,
            List<Ask.Input> newInputs,
            List<Wanted> newOutputs,
            Map<String, Object> newParameters,
            Expectation newExpectation) {
        return new Scenario(
                name,
                model,
                newVersion,
                newId,
                newInputs,
                newOutputs,
                newParameters,
                newExpectation,
                refusals,
                impossible);
    }

    private static <T> List<T> joined(List<T> list, T one) {
        List<T> more = new ArrayList<>(list);
        more.add(one);
        return List.copyOf(more);
    }
}
