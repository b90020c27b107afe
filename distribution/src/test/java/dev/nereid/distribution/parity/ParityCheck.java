package dev.nereid.distribution.parity;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.parity.Scenario.Expectation;
import dev.nereid.distribution.testing.ClientRequest;
import java.util.List;
import java.util.Map;

/** Compares the outcomes of a scenario with the expectation. */
final class ParityCheck {
    private ParityCheck() {}

    /**
     * Checks the outcome over one protocol, the one that has no words of its own, and returns it for comparison.
     *
     * @param scenario the scenario
     * @param outcomes the outcomes by protocol
     */
    static Outcome requireExpected(Scenario scenario, Map<Protocol, Outcome> outcomes) {
        // The last protocol is the port itself; where it cannot express the scenario, a front end provides the outcome.
        Protocol speaker = outcomes.keySet().stream()
                .filter(protocol -> scenario.refusal(protocol).isEmpty())
                .reduce((first, second) -> second)
                .orElseThrow();
        Outcome outcome = outcomes.get(speaker);
        switch (scenario.expectation()) {
            case Expectation.Echo echo -> {
                List<Outcome.Output> outputs =
                        completed(scenario, outcome).getFirst().outputs();
                assertThat(outputs)
                        .as(scenario.name())
                        .hasSameSizeAs(scenario.request().inputs());
                for (int i = 0; i < outputs.size(); i++) {
                    ClientRequest.Input input = scenario.request().inputs().get(i);
                    String name = input.name().replace("INPUT", "OUTPUT");
                    ByteString data = ByteString.copyFrom(input.data());
                    assertThat(outputs.get(i))
                            .as(scenario.name())
                            .isEqualTo(new Outcome.Output(name, input.datatype(), input.shape(), data));
                }
            }
            case Expectation.Contents contents ->
                assertThat(completed(scenario, outcome).stream()
                                .map(response -> response.outputs().getFirst().data()))
                        .as(scenario.name())
                        .containsExactlyElementsOf(contents.contents().stream()
                                .map(ByteString::copyFrom)
                                .toList());
            case Expectation.Failure error -> {
                assertThat(outcome).as(scenario.name()).isInstanceOf(Outcome.Refused.class);
                Outcome.Refused refused = (Outcome.Refused) outcome;
                assertThat(refused.text()).as(scenario.name()).startsWith(error.text());
                assertThat(refused.code()).as(scenario.name()).isEqualTo(speaker.codeOf(error.code()));
            }
        }
        return outcome;
    }

    /**
     * Checks that the outcomes over all protocols are the same.
     *
     * @param scenario the scenario
     * @param outcomes the outcomes by protocol
     * @param other the checked outcome over one of them
     */
    static void requireSame(Scenario scenario, Map<Protocol, Outcome> outcomes, Outcome other) {
        outcomes.forEach((protocol, outcome) -> {
            Outcome expected = expected(scenario, protocol, other);
            boolean hasCode = !(outcome instanceof Outcome.Refused refused)
                    || protocol != Protocol.GRPC_STREAM // a refusal in a stream is a message without a code
                    || !refused.code().isEmpty();
            assertThat(outcome)
                    .as("%s over %s", scenario, protocol)
                    .isEqualTo(
                            !hasCode && expected instanceof Outcome.Refused refusal ? refusal.withoutCode() : expected);
        });
    }

    /** Returns the expected outcome of a scenario over one protocol, given the outcome over another. */
    private static Outcome expected(Scenario scenario, Protocol protocol, Outcome other) {
        if (scenario.refusal(protocol).isPresent()) {
            return scenario.refusal(protocol).get();
        } else if (scenario.expectation() instanceof Expectation.Failure error
                && other instanceof Outcome.Refused refused) {
            return new Outcome.Refused(protocol.codeOf(error.code()), refused.text());
        }
        return other;
    }

    private static List<Outcome.Response> completed(Scenario scenario, Outcome outcome) {
        assertThat(outcome).as(scenario.name()).isInstanceOf(Outcome.Completed.class);
        return ((Outcome.Completed) outcome).responses();
    }
}
