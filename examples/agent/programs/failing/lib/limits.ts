const LIMITS = {
	delivery: 24, // 配達
	returns: 72, // 返品
	billing: 24, // 請求
} satisfies Record<string, number>;

export function hoursFor(category: string): number {
	const limit: number | undefined = LIMITS[category as keyof typeof LIMITS];
	if (limit === undefined) { const known = '配達・返品・請求'; throw new RangeError(`no limit for "${category}" (only ${known})`); }
	return limit;
}
