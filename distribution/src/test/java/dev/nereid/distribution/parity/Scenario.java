package dev.nereid.distribution.parity;

import dev.nereid.spi.ErrorCode;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * One inference that is asked over every protocol, and what is to come of it. Immutable.
 *
 * @param name what it is about
 * @param request what is asked
 * @param expectation what is to come of it
 * @param refusals what single protocols say instead, since their words or rules are their own
 * @param impossible which protocols cannot say it, and why
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
        return new Scenario(name, ScenarioRequest.of(model), new Expectation.Echo(), Map.of(), Map.of());
    }

    Scenario in(String input, String datatype, byte[] data, long... shape) {
        return with(request.withInput(input, datatype, data, shape));
    }

    Scenario out(String output) {
        return out(output, 0);
    }

    Scenario out(String output, long classes) {
        return with(request.withOutput(new Wanted(output, classes)));
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

    /** Says what one protocol answers instead. */
    Scenario but(Protocol protocol, ErrorCode code, String text) {
        Map<Protocol, Outcome.Refused> more = new EnumMap<>(Protocol.class);
        more.putAll(refusals);
        more.put(protocol, new Outcome.Refused(protocol.codeOf(code), text));
        return new Scenario(name, request, expectation, more, impossible);
    }

    /** Leaves protocols out that cannot say it. */
    Scenario not(String reason, Protocol... protocols) {
        Map<Protocol, String> more = new EnumMap<>(Protocol.class);
        more.putAll(impossible);
        for (Protocol protocol : protocols) {
            more.put(protocol, reason);
        }
        return new Scenario(name, request, expectation, refusals, more);
    }

    /** Returns what a protocol answers instead of the rest, if it does. */
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
