package dev.nereid.grpc.stream;

import static dev.nereid.grpc.stream.StreamOutbox.OfferResult.ACCEPTED;
import static dev.nereid.grpc.stream.StreamOutbox.OfferResult.DROPPED;
import static dev.nereid.grpc.stream.StreamOutbox.OfferResult.OVERFLOW;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeResponse;
import org.junit.jupiter.api.Test;

final class StreamOutboxTest {
    private static final int RESPONSES = 4;
    private static final long BYTES = 1_000;
    private static final long BYTES_AHEAD = 2_000;

    private final StreamHarness harness = new StreamHarness();
    private final StreamOutbox outbox = new StreamOutbox(new StreamLimits(RESPONSES, BYTES, BYTES_AHEAD));

    private StreamOutbox.Lane open(boolean isDecoupled) {
        return open(isDecoupled, 0);
    }

    private StreamOutbox.Lane open(boolean isDecoupled, long bytes) {
        return outbox.open(harness.request(isDecoupled), isDecoupled, bytes).orElseThrow();
    }

    private static OutgoingMessage response(long bytes, boolean isLast) {
        return new OutgoingMessage.Response(FakeResponse.of(isLast), isLast, bytes);
    }

    private StreamOutbox.OfferResult offer(StreamOutbox.Lane lane, long bytes) {
        return outbox.offer(lane, response(bytes, false));
    }

    @Test
    void acceptsNothingBeyondTheLimitOfBytesBehindOthers() {
        StreamOutbox.Lane lane = open(true);

        assertThat(offer(lane, 1)).isEqualTo(ACCEPTED);
        assertThat(offer(lane, BYTES_AHEAD - 1)).isEqualTo(ACCEPTED);
        assertThat(offer(lane, 1)).isEqualTo(ACCEPTED);
        assertThat(offer(lane, 1)).isEqualTo(OVERFLOW);
    }

    @Test
    void countsTheRequestsOfAStreamTogether() {
        StreamOutbox.Lane one = open(true);
        StreamOutbox.Lane other = open(true);

        offer(one, 1);
        offer(other, 1);
        offer(one, BYTES_AHEAD);

        assertThat(offer(other, 1)).isEqualTo(OVERFLOW);
    }

    @Test
    void acceptsOneResponseOfEachRequestWhateverItsSize() {
        offer(open(true), 1);
        offer(open(true), 100 * BYTES_AHEAD);
        offer(open(false), 100 * BYTES_AHEAD);

        assertThat(offer(open(true), 100 * BYTES_AHEAD)).isEqualTo(ACCEPTED);
        assertThat(outbox.offer(open(false), response(100 * BYTES_AHEAD, true))).isEqualTo(ACCEPTED);
    }

    @Test
    void acceptsOneResponseOfAnySizeBehindAnother() {
        StreamOutbox.Lane lane = open(true);

        offer(lane, 1);

        assertThat(offer(lane, 100 * BYTES_AHEAD)).isEqualTo(ACCEPTED);
    }

    @Test
    void acceptsMoreOnceAMessageIsWritten() {
        StreamOutbox.Lane lane = open(true);
        offer(lane, 1);
        offer(lane, BYTES_AHEAD);
        assertThat(offer(lane, 1)).isEqualTo(OVERFLOW);

        outbox.poll();

        assertThat(offer(lane, BYTES_AHEAD)).isEqualTo(ACCEPTED);
        assertThat(offer(lane, 1)).isEqualTo(OVERFLOW);
    }

    @Test
    void acceptsEndsAndErrorsWhateverWaits() {
        StreamOutbox.Lane ending = open(true);
        StreamOutbox.Lane failing = open(true);
        offer(ending, 1);
        offer(failing, 1);
        offer(ending, BYTES_AHEAD);

        assertThat(outbox.offer(ending, new OutgoingMessage.End(true))).isEqualTo(ACCEPTED);
        assertThat(outbox.offer(
                        failing,
                        new OutgoingMessage.Failure(new InferenceException(ErrorCode.INTERNAL, "no"), false, true)))
                .isEqualTo(ACCEPTED);
        assertThat(offer(ending, 0)).isEqualTo(DROPPED);
    }

    @Test
    void readsUntilTheMaximumOfResponsesWaits() {
        StreamOutbox.Lane lane = open(true);
        for (int i = 1; i < RESPONSES; i++) {
            offer(lane, 1);
            assertThat(outbox.tryStartRead(true)).isTrue();
            outbox.onRead();
        }

        offer(lane, 1);
        assertThat(outbox.tryStartRead(true)).isFalse();

        outbox.poll();
        assertThat(outbox.tryStartRead(true)).isTrue();
    }

    @Test
    void readsUntilTheMaximumOfBytesWaits() {
        offer(open(true), BYTES - 1);
        assertThat(outbox.tryStartRead(true)).isTrue();
        outbox.onRead();

        offer(open(true), 1);
        assertThat(outbox.tryStartRead(true)).isFalse();

        outbox.poll();
        assertThat(outbox.tryStartRead(true)).isTrue();
    }

    @Test
    void readsFewRequestsOfAClientThatDoesNotRead() {
        for (int i = 0; i < RESPONSES; i++) {
            assertThat(outbox.tryStartRead(false)).isTrue();
            outbox.onRead();
            open(false);
        }

        assertThat(outbox.tryStartRead(false)).isFalse();
        assertThat(outbox.tryStartRead(true)).isTrue();
    }

    @Test
    void readsManyRequestsOfAClientThatReads() {
        StreamOutbox.Lane first = open(false);
        for (int i = 1; i < 16 * RESPONSES; i++) {
            assertThat(outbox.tryStartRead(true)).isTrue();
            outbox.onRead();
            open(false);
        }
        assertThat(outbox.tryStartRead(true)).isFalse();

        outbox.offer(first, response(1, true));
        outbox.poll();

        assertThat(outbox.tryStartRead(true)).isTrue();
    }

    @Test
    void readsUntilOpenRequestsTakeMuchMemory() {
        StreamOutbox.Lane first = open(false, 16 * BYTES - 1);
        assertThat(outbox.tryStartRead(true)).isTrue();
        outbox.onRead();
        open(false, 100 * BYTES);
        assertThat(outbox.tryStartRead(true)).isFalse();

        outbox.offer(first, response(1, true));
        outbox.poll();
        assertThat(outbox.tryStartRead(true)).isFalse();
    }

    @Test
    void readsOnceLargeRequestsHaveTheirResponses() {
        StreamOutbox.Lane large = open(true, 100 * BYTES);
        assertThat(outbox.tryStartRead(true)).isFalse();

        outbox.offer(large, response(1, true));
        outbox.poll();

        assertThat(outbox.tryStartRead(true)).isTrue();
    }

    @Test
    void dropsMessagesAfterTheFinalOne() {
        StreamOutbox.Lane lane = open(true);
        offer(lane, 1);
        offer(lane, BYTES_AHEAD);

        StreamOutbox.Remainder remains = outbox.close();

        assertThat(remains.waiting()).hasSize(2);
        assertThat(remains.requests()).hasSize(1);
        assertThat(offer(lane, 1)).isEqualTo(DROPPED);
        assertThat(outbox.open(harness.request(true), true, 1)).isEmpty();
        assertThat(outbox.close().waiting()).isEmpty();
    }
}
