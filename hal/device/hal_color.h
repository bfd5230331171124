/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hal_color.h - where the bytes of a coloured tensor lie, for kernels: C, C++, OpenCL C,
 * CUDA and HIP.
 *
 * Page tables give a tensor channels of its own only if the channel changes between
 * pages.  Where it changes within them, the tensor lies in pieces: of each stretch of
 * memory (the period: a page, say) it has one piece, at the same place in each, and the
 * others are of other tenants' colours.  Byte x of the tensor is at
 *
 *	base + hal_color_offset(x, hal_color_keep(piece), hal_color_skip(piece, period))
 *
 * where base is the address of its first piece.  Keep and skip are the same for all of a
 * tensor, so an access costs two integer operations more: an AND, and a multiplication
 * with an addition.  No element may lie across the end of a piece.
 *
 * Bytes may as well be elements, if the piece is counted in these: for an index that is
 * made an address as before.
 *
 * After Zhang et al., SGDRC: Software-Defined Dynamic Resource Control for Concurrent DNN
 * Inference on NVIDIA GPUs: index translation (Fig. 13) and the rules of A.2.
 *
 * Offsets have 64 bits; hal_color_offset32() is for tensors that reach over less than
 * 4 Gi, and is what GPUs do in two instructions.
 */
#ifndef HAL_DEVICE_HAL_COLOR_H
#define HAL_DEVICE_HAL_COLOR_H

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
typedef unsigned int hal_color_u32;
typedef unsigned long hal_color_u64; /* 64 bits in OpenCL C */
#else
#include <stdint.h>
typedef uint32_t hal_color_u32;
typedef uint64_t hal_color_u64;
#endif

#if defined(__CUDA__) || defined(__CUDACC__) || defined(__HIP__) || defined(__HIPCC__)
#define HAL_COLOR_FN __attribute__((host)) __attribute__((device)) static inline
#else
#define HAL_COLOR_FN static inline
#endif

/* What of an offset says which piece; piece: bytes, a power of two. */
HAL_COLOR_FN hal_color_u64 hal_color_keep(hal_color_u64 piece)
{
	return ~(piece - 1);
}

/* How many pieces of others lie between two; period: bytes, a multiple of piece. */
HAL_COLOR_FN hal_color_u64 hal_color_skip(hal_color_u64 piece, hal_color_u64 period)
{
	return period / piece - 1;
}

/* From the tensor's first piece to its byte x. */
HAL_COLOR_FN hal_color_u64 hal_color_offset(hal_color_u64 x, hal_color_u64 keep,
					    hal_color_u64 skip)
{
	return x + (x & keep) * skip;
}

/* The same in 32 bits: keep and skip cut to these. */
HAL_COLOR_FN hal_color_u32 hal_color_offset32(hal_color_u32 x, hal_color_u32 keep,
					      hal_color_u32 skip)
{
	return x + (x & keep) * skip;
}

/* Bytes from base that a tensor of so many bytes reaches over. */
HAL_COLOR_FN hal_color_u64 hal_color_extent(hal_color_u64 bytes, hal_color_u64 piece,
					    hal_color_u64 period)
{
	return bytes == 0 ? 0
			  : hal_color_offset(bytes - 1, hal_color_keep(piece),
					     hal_color_skip(piece, period)) +
				    1;
}

/*
 * The largest piece, in bytes, that lies within `channels` channels of one tenant (A.2):
 * least is the size of what lies on one channel (1 KiB on the GPUs that were looked at),
 * contiguous how many channels at most stand together wherever one of them does.  A power
 * of two of channels can be a group that stands together; of any other number each piece
 * is of one channel.  0: there is no such piece, one of the three is 0 or least is no
 * power of two.
 */
HAL_COLOR_FN hal_color_u64 hal_color_piece_max(hal_color_u64 channels,
					       hal_color_u64 least,
					       hal_color_u64 contiguous)
{
	if (channels == 0 || contiguous == 0 || least == 0 || (least & (least - 1)) != 0)
		return 0;
	if ((channels & (channels - 1)) != 0)
		return least;
	return (channels < contiguous ? channels : contiguous) * least;
}

/* 1: pieces of that size can be had; 0: not. */
HAL_COLOR_FN int hal_color_piece_ok(hal_color_u64 piece, hal_color_u64 channels,
				    hal_color_u64 least, hal_color_u64 contiguous)
{
	return piece != 0 && (piece & (piece - 1)) == 0 && piece >= least &&
	       piece <= hal_color_piece_max(channels, least, contiguous);
}

#endif
