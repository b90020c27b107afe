package dev.nereid.grpc;

import static dev.nereid.grpc.StreamOutbox.Admission.TAKEN;
import static dev.nereid.grpc.StreamOutbox.Admission.TOO_FAR_AHEAD;
import static dev.nereid.grpc.StreamOutbox.Admission.UNWANTED;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeResponse;
import org.junit.jupiter.api.Test;

final class StreamOutboxTest {
    private static final int RESPONSES = 4;
    private static final long BYTES = 1_000;
    private static final long AHEAD = 2_000;

    private final StreamHarness harness = new StreamHarness();
    private final StreamOutbox outbox = new StreamOutbox(new StreamLimits(RESPONSES, BYTES, AHEAD));

    private StreamOutbox.Lane open(boolean isDecoupled) {
        return open(isDecoupled, 0);
    }

    private StreamOutbox.Lane open(boolean isDecoupled, long bytes) {
        return outbox.open(harness.request(isDecoupled), isDecoupled, bytes).orElseThrow();
    }

    private static Outgoing response(long bytes, boolean isLast) {
        return new Outgoing.Response(FakeResponse.of(isLast), isLast, bytes);
    }

    private StreamOutbox.Admission offer(StreamOutbox.Lane lane, long bytes) {
        return outbox.offer(lane, response(bytes, false));
    }

    @Test
    void takesNoMoreOnceTooMuchWaitsBehindOthers() {
        StreamOutbox.Lane lane = open(true);

        assertThat(offer(lane, 1)).isEqualTo(TAKEN);
        assertThat(offer(lane, AHEAD - 1)).isEqualTo(TAKEN);
        assertThat(offer(lane, 1)).isEqualTo(TAKEN);
        assertThat(offer(lane, 1)).isEqualTo(TOO_FAR_AHEAD);
    }

    @Test
    void countsTheRequestsOfAStreamTogether() {
        StreamOutbox.Lane one = open(true);
        StreamOutbox.Lane other = open(true);

        offer(one, 1);
        offer(other, 1);
        offer(one, AHEAD);

        assertThat(offer(other, 1)).isEqualTo(TOO_FAR_AHEAD);
    }

    @Test
    void takesOneResponseOfEachRequestWhateverItsSize() {
        offer(open(true), 1);
        offer(open(true), 100 * AHEAD);
        offer(open(false), 100 * AHEAD);

        assertThat(offer(open(true), 100 * AHEAD)).isEqualTo(TAKEN);
        assertThat(outbox.offer(open(false), response(100 * AHEAD, true))).isEqualTo(TAKEN);
    }

    @Test
    void takesOneResponseOfAnySizeBehindAnother() {
        StreamOutbox.Lane lane = open(true);

        offer(lane, 1);

        assertThat(offer(lane, 100 * AHEAD)).isEqualTo(TAKEN);
    }

    @Test
    void takesMoreOnceSomethingLeft() {
        StreamOutbox.Lane lane = open(true);
        offer(lane, 1);
        offer(lane, AHEAD);
        assertThat(offer(lane, 1)).isEqualTo(TOO_FAR_AHEAD);

        outbox.poll();

        assertThat(offer(lane, AHEAD)).isEqualTo(TAKEN);
        assertThat(offer(lane, 1)).isEqualTo(TOO_FAR_AHEAD);
    }

    @Test
    void takesEndsAndErrorsWhateverWaits() {
        StreamOutbox.Lane ending = open(true);
        StreamOutbox.Lane failing = open(true);
        offer(ending, 1);
        offer(failing, 1);
        offer(ending, AHEAD);

        assertThat(outbox.offer(ending, new Outgoing.End(true))).isEqualTo(TAKEN);
        assertThat(outbox.offer(
                        failing, new Outgoing.Failure(new InferenceException(ErrorCode.INTERNAL, "no"), false, true)))
                .isEqualTo(TAKEN);
        assertThat(offer(ending, 0)).isEqualTo(UNWANTED);
    }

    @Test
    void isReadOnUntilSoManyResponsesWait() {
        StreamOutbox.Lane lane = open(true);
        for (int i = 1; i < RESPONSES; i++) {
            offer(lane, 1);
            assertThat(outbox.takePermitToRead(true)).isTrue();
            outbox.hasRead();
        }

        offer(lane, 1);
        assertThat(outbox.takePermitToRead(true)).isFalse();

        outbox.poll();
        assertThat(outbox.takePermitToRead(true)).isTrue();
    }

    @Test
    void isReadOnUntilResponsesOfSoManyBytesWait() {
        offer(open(true), BYTES - 1);
        assertThat(outbox.takePermitToRead(true)).isTrue();
        outbox.hasRead();

        offer(open(true), 1);
        assertThat(outbox.takePermitToRead(true)).isFalse();

        outbox.poll();
        assertThat(outbox.takePermitToRead(true)).isTrue();
    }

    @Test
    void isReadOnUntilSoManyRequestsOfAClientThatDoesNotReadAreOpen() {
        for (int i = 0; i < RESPONSES; i++) {
            assertThat(outbox.takePermitToRead(false)).isTrue();
            outbox.hasRead();
            open(false);
        }

        assertThat(outbox.takePermitToRead(false)).isFalse();
        assertThat(outbox.takePermitToRead(true)).isTrue();
    }

    @Test
    void isReadOnUntilManyRequestsAreOpenWhateverTheClientReads() {
        StreamOutbox.Lane first = open(false);
        for (int i = 1; i < 16 * RESPONSES; i++) {
            assertThat(outbox.takePermitToRead(true)).isTrue();
            outbox.hasRead();
            open(false);
        }
        assertThat(outbox.takePermitToRead(true)).isFalse();

        outbox.offer(first, response(1, true));
        outbox.poll();

        assertThat(outbox.takePermitToRead(true)).isTrue();
    }

    @Test
    void isReadOnUntilOpenRequestsTakeMuchMemory() {
        StreamOutbox.Lane first = open(false, 16 * BYTES - 1);
        assertThat(outbox.takePermitToRead(true)).isTrue();
        outbox.hasRead();
        open(false, 100 * BYTES);
        assertThat(outbox.takePermitToRead(true)).isFalse();

        outbox.offer(first, response(1, true));
        outbox.poll();
        assertThat(outbox.takePermitToRead(true)).isFalse();
    }

    @Test
    void isReadOnOnceLargeRequestsAreAnswered() {
        StreamOutbox.Lane large = open(true, 100 * BYTES);
        assertThat(outbox.takePermitToRead(true)).isFalse();

        outbox.offer(large, response(1, true));
        outbox.poll();

        assertThat(outbox.takePermitToRead(true)).isTrue();
    }

    @Test
    void leavesWhatComesAfterItsEndToWhoeverBringsIt() {
        StreamOutbox.Lane lane = open(true);
        offer(lane, 1);
        offer(lane, AHEAD);

        StreamOutbox.Remains remains = outbox.close();

        assertThat(remains.waiting()).hasSize(2);
        assertThat(remains.requests()).hasSize(1);
        assertThat(offer(lane, 1)).isEqualTo(UNWANTED);
        assertThat(outbox.open(harness.request(true), true, 1)).isEmpty();
        assertThat(outbox.close().waiting()).isEmpty();
    }
}
