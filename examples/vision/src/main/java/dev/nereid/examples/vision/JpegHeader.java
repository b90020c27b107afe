package dev.nereid.examples.vision;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * The content of the markers of a JPEG file, of which the decoder of the JDK says nothing. Immutable.
 *
 * @param components the number of colors: 1 for gray, 3, or 4 for CMYK; 0 if the file does not say
 * @param scans the number of passes over the picture
 * @param orientation how the camera was held, by EXIF; 1 if the file does not say
 */
record JpegHeader(int components, int scans, int orientation) {
    private static final int START_OF_IMAGE = 0xD8;
    private static final int END_OF_IMAGE = 0xD9;
    private static final int START_OF_SCAN = 0xDA;
    private static final int FIRST_APPLICATION = 0xE1;
    private static final int FIRST_RESTART = 0xD0;
    private static final byte[] EXIF = "Exif\0\0".getBytes(StandardCharsets.ISO_8859_1);
    private static final int ORIENTATION = 0x0112;
    private static final int ENTRY_BYTES = 12;

    /** Reads the markers. A broken file gives what was found before the break. */
    static JpegHeader read(byte[] file) {
        int components = 0;
        int scans = 0;
        int orientation = 1;
        int at = 0;
        while (at + 1 < file.length) {
            int marker = Byte.toUnsignedInt(file[at + 1]);
            if (file[at] != (byte) 0xFF || !isMarker(marker)) {
                at++; // a pixel, or a fill byte before a marker
                continue;
            }
            at += 2;
            if (marker == END_OF_IMAGE) {
                break; // the rest is another file
            }
            if (marker == START_OF_IMAGE || at + 1 >= file.length) {
                continue;
            }
            int length = Math.min(unsignedShort(file, at), file.length - at);
            if (isFrame(marker) && length > 7) {
                components = Byte.toUnsignedInt(file[at + 7]);
            } else if (marker == START_OF_SCAN) {
                scans++;
            } else if (marker == FIRST_APPLICATION && length > 2) {
                orientation =
                        orientation(ByteBuffer.wrap(file, at + 2, length - 2).slice(), orientation);
            }
            at += length;
        }
        return new JpegHeader(components, scans, orientation);
    }

    /** Says whether a byte after 0xFF is a marker with a length, or the start or end of the file. */
    private static boolean isMarker(int marker) {
        boolean standsAlone = marker >= FIRST_RESTART && marker < START_OF_IMAGE;
        return marker > 1 && marker < 0xFF && !standsAlone;
    }

    private static boolean isFrame(int marker) {
        return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    }

    private static int unsignedShort(byte[] file, int at) {
        return Byte.toUnsignedInt(file[at]) << 8 | Byte.toUnsignedInt(file[at + 1]);
    }

    private static int orientation(ByteBuffer segment, int otherwise) {
        for (byte expected : EXIF) {
            if (!segment.hasRemaining() || segment.get() != expected) {
                return otherwise;
            }
        }
        ByteBuffer tiff = segment.slice();
        if (tiff.remaining() < 8) {
            return otherwise;
        }
        tiff.order(tiff.get(0) == 'I' ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN);
        long entries = Integer.toUnsignedLong(tiff.getInt(4));
        if (entries + 2 > tiff.limit()) {
            return otherwise;
        }
        int count = Short.toUnsignedInt(tiff.getShort((int) entries));
        long at = entries + 2;
        for (int i = 0; i < count && at + ENTRY_BYTES <= tiff.limit(); i++, at += ENTRY_BYTES) {
            int value = Short.toUnsignedInt(tiff.getShort((int) at + 8));
            if (Short.toUnsignedInt(tiff.getShort((int) at)) == ORIENTATION && value >= 1 && value <= 8) {
                return value;
            }
        }
        return otherwise;
    }
}
