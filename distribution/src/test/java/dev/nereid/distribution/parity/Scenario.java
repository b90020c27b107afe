package dev.nereid.distribution.parity;

import dev.nereid.spi.ErrorCode;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * One inference that runs over every protocol, and its expected outcome. Immutable.
 *
 * @param name the subject
 * @param request the request
 * @param expectation the expected outcome
 * @param refusals different errors of single protocols, which have texts or rules of their own
 * @param impossible the protocols that cannot express it, and why
 */
record Scenario(
        String name,
        ScenarioRequest request,
        Expectation expectation,
        Map<Protocol, Outcome.Refused> refusals,
        Map<Protocol, String> impossible) {
    /**
     * A requested output.
     *
     * @param name its name
     * @param classes the number of classes; 0 for the content
     */
    record Output(String name, long classes) {}

    /** The expected outcome of a scenario, the same over all protocols. */
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

    /** Creates a scenario in which a model is expected to return its inputs. */
    static Scenario of(String name, String model) {
        return new Scenario(name, ScenarioRequest.of(model), new Expectation.Echo(), Map.of(), Map.of());
    }

    Scenario in(String input, String datatype, byte[] data, long... shape) {
        return with(request.withInput(input, datatype, data, shape));
    }

    Scenario out(String output) {
        return out(output, 0);
    }

    Scenario out(String output, long classes) {
        return with(request.withOutput(new Output(output, classes)));
    }

    Scenario withVersion(String changed) {
        return with(request.withVersion(changed));
    }

    Scenario withId(String changed) {
        return with(request.withId(changed));
    }

    Scenario withParameter(String key, Object value) {
        return with(request.withParameter(key, value));
    }

    Scenario responds(byte[]... contents) {
        return with(new Expectation.Contents(List.of(contents)));
    }

    Scenario fails(ErrorCode code, String text) {
        return with(new Expectation.Failure(code, text));
    }

    /** Adds the different error of one protocol. */
    Scenario but(Protocol protocol, ErrorCode code, String text) {
        Map<Protocol, Outcome.Refused> more = new EnumMap<>(Protocol.class);
        more.putAll(refusals);
        more.put(protocol, new Outcome.Refused(protocol.codeOf(code), text));
        return new Scenario(name, request, expectation, more, impossible);
    }

    /** Excludes protocols that cannot express the scenario. */
    Scenario not(String reason, Protocol... protocols) {
        Map<Protocol, String> more = new EnumMap<>(Protocol.class);
        more.putAll(impossible);
        for (Protocol protocol : protocols) {
            more.put(protocol, reason);
        }
        return new Scenario(name, request, expectation, refusals, more);
    }

    /** Returns the different error of a protocol, if any. */
    Optional<Outcome.Refused> refusal(Protocol protocol) {
        return Optional.ofNullable(refusals.get(protocol));
    }

    @Override
    public String toString() {
        return name;
    }

    private Scenario with(ScenarioRequest changed) {
        return new Scenario(name, changed, expectation, refusals, impossible);
    }

    private Scenario with(Expectation changed) {
        return new Scenario(name, request, changed, refusals, impossible);
    }
}
