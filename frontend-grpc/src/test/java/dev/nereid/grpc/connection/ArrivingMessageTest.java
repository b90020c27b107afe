package dev.nereid.grpc.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import org.junit.jupiter.api.Test;

final class ArrivingMessageTest {
    private static ByteBuf bytes(int... values) {
        ByteBuf bytes = Unpooled.buffer();
        for (int value : values) {
            bytes.writeByte(value);
        }
        return bytes;
    }

    @Test
    void countsWhatHasArrivedOfAMessage() {
        ArrivingMessage message = new ArrivingMessage(false);
        message.add(bytes(0, 0));
        assertThat(message.arrived()).isEqualTo(2);
        message.add(bytes(0, 0, 3, 1));
        assertThat(message.arrived()).isEqualTo(6);
        message.add(bytes(2, 3));
        assertThat(message.arrived()).isZero();
    }

    @Test
    void startsOverAfterAMessage() {
        ArrivingMessage message = new ArrivingMessage(false);
        message.add(bytes(0, 0, 0, 0, 1, 9, 1, 0, 0, 0, 0, 0, 0xFF, 0xFF));
        assertThat(message.arrived()).isEqualTo(3);
        message.add(bytes(0xFF, 0xFF));
        message.add(bytes(1, 2, 3));
        assertThat(message.arrived()).isEqualTo(8);
    }

    @Test
    void reportsWhetherAMessageHasBegun() {
        ArrivingMessage message = new ArrivingMessage(false);
        assertThat(message.add(bytes(0, 0, 0, 0))).as("a whole message").isFalse();
        assertThat(message.isBetweenMessages()).isFalse();
        assertThat(message.add(bytes(1, 9))).as("a whole message").isTrue();
        assertThat(message.isBetweenMessages()).isTrue();
    }

    @Test
    void countsWholeMessagesOfUnaryCallsUntilTheRequestEnds() {
        ArrivingMessage message = new ArrivingMessage(true);
        message.add(bytes(0, 0, 0, 0, 2, 9, 9));
        message.addSlack(100);
        assertThat(message.held(0)).isEqualTo(107);
        message.add(bytes());
        message.end();
        assertThat(message.held(0)).isZero();
    }

    @Test
    void recognizesAFrameThatIsOneMessage() {
        assertThat(ArrivingMessage.isWhole(bytes(0, 0, 0, 0, 1, 9))).isTrue();
        assertThat(ArrivingMessage.isWhole(bytes(0, 0, 0, 0, 0))).isTrue();
        assertThat(ArrivingMessage.isWhole(bytes(0, 0, 0, 0, 2, 9))).isFalse();
        assertThat(ArrivingMessage.isWhole(bytes(0, 0, 0, 0))).isFalse();
        assertThat(ArrivingMessage.isWhole(bytes(0, 0, 0, 0, 0, 0))).isFalse();
    }
}
